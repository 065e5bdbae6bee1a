/** Where the focus is after a row of a list was removed, in a real browser. */
import type { Page } from "playwright-core";
import { test } from "vitest";
import type { CustomDomain } from "../../../../protocol/schemas/domains/domains.ts";
import type { Token } from "../../../../protocol/schemas/tokens.ts";
import { createReceiver } from "../../../harness/fakes/vendor.ts";
import { createNetwork, enroll, registerServer } from "../../../harness/server/private-networks.ts";
import { RelayLink } from "../../../harness/server/relay-link.ts";
import { mintToken, newEmail, startApi, type Person } from "../../../harness/server/api.ts";
import {
  answerDialog,
  chooseAction,
  clickButton,
  getDialog,
  getRow,
  usePages,
  waitForContent,
} from "../../../harness/browser/pages.ts";

const pages = usePages(() => startApi());

/** Waits until this element has the focus, which moves just after the row has disappeared. */
async function waitForFocus(page: Page, selector: string): Promise<void> {
  await page.locator(`${selector}:focus`).waitFor();
}

/** In the order of the list. */
async function listTokenNames(owner: Person): Promise<string[]> {
  return (await owner.get<Token[]>("/tokens")).body.map(({ name }) => name);
}

const newName = () => `row-${crypto.randomUUID().slice(0, 8)}`;

test("the focus moves to the next row, to the one before, and at last to the heading of the list", async () => {
  const owner = await pages.api.owner();
  for (const name of ["laptop", "server", "build"]) await mintToken(owner, { name });
  const [above, between, below] = await listTokenNames(owner);
  const page = await pages.openAs(owner.email, "/tokens");
  const revoke = async (name = "") => {
    await chooseAction(page, name, "Revoke…");
    await answerDialog(page, "Revoke");
    await getRow(page, name).waitFor({ state: "detached" });
  };
  await revoke(between);
  await waitForFocus(page, `[aria-label="Actions for ${below}"]`);
  await revoke(below);
  await waitForFocus(page, `[aria-label="Actions for ${above}"]`);
  await revoke(above);
  await page.getByRole("heading", { name: "0 tokens" }).and(page.locator(":focus")).waitFor();
});

test("a token that stays in the list of all tokens passes the focus on", async () => {
  const owner = await pages.api.owner();
  for (const name of ["laptop", "server"]) await mintToken(owner, { name });
  const [above = "", below] = await listTokenNames(owner);
  const page = await pages.openAs(owner.email, "/tokens?state=all");
  await chooseAction(page, above, "Revoke…");
  await answerDialog(page, "Revoke");
  await waitForFocus(page, `[aria-label="Actions for ${below}"]`);
});

test("names, domains, projects, members, invitations and sessions keep the focus near the removed row", async () => {
  const owner = await pages.api.owner();
  const [name, nextName] = [newName(), newName()];
  for (const subdomain of [nextName, name]) {
    await owner.post("/reserved-subdomains", { subdomain });
  }
  const domains: string[] = [];
  for (const _ of [0, 1]) {
    const body = { domain: `${newName()}.example` };
    domains.push((await owner.post<CustomDomain>("/domains", body)).body.domain);
  }
  await owner.post("/projects", { slug: "staging", name: "Staging" });
  const leaving = await pages.api.colleague(owner, "member");
  const email = newEmail();
  await owner.post(`/orgs/${owner.orgId}/invitations`, { email, role: "member" });

  const page = await pages.openAs(owner.email, "/names");
  await clickButton(page, `Release ${name}`);
  await waitForFocus(page, `[aria-label="Release ${nextName}"]`);

  await goTo(page, "/domains");
  await chooseAction(page, domains[1]!, "Remove…");
  await answerDialog(page, "Remove");
  await waitForFocus(page, "li button");
  await chooseAction(page, domains[0]!, "Remove…");
  await answerDialog(page, "Remove");
  await waitForFocus(page, "h1");

  await goTo(page, "/projects");
  await chooseAction(page, "Staging", "Delete…");
  await page.getByLabel("Type staging to confirm").fill("staging");
  await answerDialog(page, "Delete");
  await waitForFocus(page, '[aria-label="Actions for Default"]');

  await goTo(page, "/members");
  await clickButton(page, `Remove ${leaving.email}`);
  await answerDialog(page, "Remove");
  await page
    .getByRole("heading", { name: "Members", level: 2 })
    .and(page.locator(":focus"))
    .waitFor();
  await clickButton(page, `Revoke the invitation of ${email}`);
  await answerDialog(page, "Revoke");
  await page.getByRole("heading", { name: "Invitations" }).and(page.locator(":focus")).waitFor();

  await goTo(page, "/me");
  await page.getByRole("button", { name: /^Sign out .* at / }).click();
  await answerDialog(page, "Sign out");
  await page.getByRole("heading", { name: "Sessions" }).and(page.locator(":focus")).waitFor();
});

test("a removed device passes the focus on; a receiver that is deleted on its own page leads to the title of the list", async () => {
  const owner = await pages.api.owner();
  using _relay = await RelayLink.connect(pages.api.server, { lastPort: 40_600 });
  const { id } = await createNetwork(owner, { name: newName() });
  await registerServer(owner, id);
  await enroll(owner, id, { name: "phone" });
  await enroll(owner, id, { name: "tablet" });
  const { device } = await enroll(owner, id, { name: "watch" });
  const receiver = await createReceiver(owner, "generic_hmac_sha256", "orders");
  const page = await pages.openAs(owner.email, `/networks/${id}`);
  // The focus stays where the user has put it when another row disappears.
  await page.getByRole("button", { name: "Actions for watch" }).focus();
  await page.getByRole("button", { name: "Add a device" }).focus();
  await owner.delete(`/private-networks/${id}/devices/${device.id}`);
  await page.getByRole("row", { name: "watch" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Add a device" }).and(page.locator(":focus")).waitFor();

  await chooseAction(page, "tablet", "Remove…");
  await answerDialog(page, "Remove");
  await waitForFocus(page, '[aria-label="Actions for phone"]');

  await goTo(page, `/receivers/${receiver.id}`);
  await clickButton(page, "Delete");
  await page.getByLabel("Type orders to confirm").fill("orders");
  await getDialog(page).getByRole("button", { name: "Delete the receiver" }).click();
  await page
    .getByRole("heading", { name: "Webhook receivers" })
    .and(page.locator(":focus"))
    .waitFor();
});

async function goTo(page: Page, path: string): Promise<void> {
  await page.goto(pages.origin + path);
  await waitForContent(page);
}
