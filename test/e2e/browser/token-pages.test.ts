/** Tokens in the dashboard, in a real browser. */
import { text } from "node:stream/consumers";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { Project } from "../../../protocol/schemas/organizations/projects.ts";
import type { Token } from "../../../protocol/schemas/tokens.ts";
import { findChangingCommands } from "../../harness/browser/page-checks.ts";
import {
  answerDialog,
  chooseAction,
  clickButton,
  getDialog,
  getRow,
  saveNewToken,
  usePages,
} from "../../harness/browser/pages.ts";
import {
  getSocket,
  mintToken,
  startApi,
  waitUntil,
  type Person,
} from "../../harness/server/api.ts";

const pages = usePages(() => startApi());

const findToken = async (owner: Person, name: string) =>
  (await owner.get<Token[]>("/tokens")).body.find((token) => token.name === name);

test("a token is minted by keyboard alone, shown once, and works for an agent", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/tokens");
  await page.getByRole("heading", { name: "No machine has a token yet" }).waitFor();
  const press = async (...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  await page.getByRole("button", { name: "Mint a token" }).focus();
  await press("Enter");
  await page.getByRole("radio", { name: "Agent on one machine" }).waitFor();
  await page.getByRole("radio", { name: "Agent on one machine" }).focus();
  await press("ArrowRight", "Tab");
  await page.keyboard.type("nightly build");
  await press("Enter");
  const dialog = page.getByRole("dialog", { name: "Save the token" });
  const token = await dialog.locator("code").first().textContent();
  await press("Escape");
  expect(await dialog.getByRole("button", { name: "Close" }).isDisabled()).toBe(true);
  await dialog.getByLabel("I have saved it").focus();
  await press("Space", "Tab", "Enter");
  await dialog.waitFor({ state: "detached" });
  await getRow(page, "nightly build").getByText("expires in").waitFor();

  const minted = await findToken(owner, "nightly build");
  expect(minted).toMatchObject({ tunnelQuota: 5, allowedSubdomains: [] });
  expect(minted!.expiresAt - minted!.issuedAt).toBe(3600);
  getSocket(await pages.api.connectAgent(token!, { port: 1 })).close();
});

test("the form mints tokens with restrictions and a budget, and shows what the API refuses", async () => {
  const owner = await pages.api.owner();
  await owner.post<Project>("/projects", { slug: "staging", name: "Staging" });
  const page = await pages.openAs(owner.email, "/tokens");
  await clickButton(page, "Mint a token");
  const dialog = getDialog(page);
  await dialog.getByLabel("Name", { exact: true }).fill("demo");
  await dialog.getByLabel("Allowed names").fill("demo_1, pr-*");
  await dialog.getByLabel("Tunnel limit").fill("2");
  await dialog.getByLabel("Mbit/s per tunnel").fill("7");
  await dialog.getByLabel("Monthly budget (USD)").fill("2.50");
  await dialog.getByRole("button", { name: "Mint" }).click();
  await dialog.getByText("It must have 1 to 63 lower-case letters").waitFor();
  await dialog.getByLabel("Allowed names").fill("demo, pr-*");
  await dialog.getByRole("button", { name: "Mint" }).click();
  await page.getByText("underpass http 3000 --subdomain demo").waitFor();
  await saveNewToken(page);
  await getRow(page, "Only demo, pr-* · 2 tunnels · 7 Mbit/s").waitFor();
  await getRow(page, "$0.00 of $2.50 this month").waitFor();

  await clickButton(page, "Mint a token");
  await dialog.getByRole("radio", { name: "CI, one hour" }).check();
  await dialog.getByLabel("Name", { exact: true }).fill("deploy");
  await dialog.getByLabel("Project").selectOption("staging");
  await dialog.getByLabel("Allowed names").fill("pr-*");
  await dialog.getByRole("button", { name: "Mint" }).click();
  await page.getByText("--project staging").waitFor();
  await saveNewToken(page);
  await getRow(page, "Only pr-*-staging").getByText("project staging").waitFor();

  await clickButton(page, "Mint a token");
  await dialog.getByRole("radio", { name: "Master key" }).check();
  await dialog.getByLabel("Name", { exact: true }).fill("build farm");
  await dialog.getByRole("button", { name: "Mint" }).click();
  expect(await saveNewToken(page)).toMatch(/^mtk_master_/);
  await page.getByLabel("Kind").selectOption("Master keys");
  await page.getByRole("heading", { name: "1 token" }).waitFor();
  expect(new URL(page.url()).search).toBe("?kind=master");
  await page.reload();
  await page.getByRole("heading", { name: "1 token" }).waitFor();
});

test("a token for logs and metrics reads them, and opens no tunnels", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/tokens");
  await clickButton(page, "Mint a token");
  const dialog = getDialog(page);
  await dialog.getByRole("radio", { name: "Logs and metrics" }).check();
  await dialog.getByLabel("Name", { exact: true }).fill("prometheus");
  await dialog.getByRole("button", { name: "Mint" }).click();
  await dialog.getByText("underpass logs --server").waitFor();
  const token = await saveNewToken(page);
  await getRow(page, "A budget of 0: opens no tunnels").waitFor();
  const headers = { authorization: `Bearer ${token}` };
  for (const path of ["/metrics/prometheus", "/inspector"]) {
    expect(await pages.api.anonymous.send("GET", path, { headers })).toMatchObject({ status: 200 });
  }
  expect(await pages.api.connectAgent(token, { port: 1 })).toMatchObject({ code: 4402 });
});

test("a new token whose budget could not be set is shown without it", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/tokens");
  const body = JSON.stringify({ error: "conflict", message: "The budget was not set." });
  await page.route("**/tokens/*/budget", (route) =>
    route.fulfill({ status: 409, contentType: "application/json", body }),
  );
  await clickButton(page, "Mint a token");
  const dialog = getDialog(page);
  await dialog.getByRole("radio", { name: "Logs and metrics" }).check();
  await dialog.getByLabel("Name", { exact: true }).fill("unlimited");
  await dialog.getByRole("button", { name: "Mint" }).click();
  await page.getByText("The budget was not set.").first().waitFor();
  await dialog.getByText("underpass http 3000").waitFor();
});

test("a token is rotated, gets a budget with undo, and is revoked", async () => {
  const owner = await pages.api.owner();
  const { nonce } = await mintToken(owner, { name: "laptop" });
  const page = await pages.openAs(owner.email, "/tokens");
  await chooseAction(page, "laptop", "Set the budget…");
  await page.getByLabel("Monthly budget (USD)").fill("10");
  await answerDialog(page, "Save");
  await getRow(page, "laptop").getByText("$0.00 of $10.00 this month").waitFor();
  await clickButton(page, "Undo");
  await getRow(page, "laptop").getByText("$0.00 this month, no budget").waitFor();

  await chooseAction(page, "laptop", "Rotate…");
  await answerRotation(page);
  const successor = await waitUntil(async () => {
    const { body } = await owner.get<Token[]>("/tokens");
    return body.find((token) => token.name === "laptop" && token.nonce !== nonce);
  });
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    clickButton(page, "Download as a file"),
  ]);
  expect(download.suggestedFilename()).toBe("laptop.token");
  const file = await text(await download.createReadStream());
  expect(file).toBe(`${await saveNewToken(page)}\n`);
  await page.getByText(successor.nonce.slice(0, 8)).waitFor();
  await page.getByRole("heading", { name: "1 token" }).waitFor();

  await chooseAction(page, "laptop", "Revoke…");
  await answerDialog(page, "Revoke");
  await page.getByText("No token matches.").waitFor();
  await clickButton(page, "Show all tokens");
  await page.getByRole("heading", { name: "2 tokens" }).waitFor();
  expect(await page.getByText("revoked", { exact: true }).count()).toBe(2);
});

/** The dialog of the new token follows at once, so that a dialog is open all the time. */
async function answerRotation(page: Page): Promise<void> {
  const dialog = page.getByRole("dialog", { name: /^Rotate / });
  await dialog.getByRole("button", { name: "Rotate" }).click();
  await page.getByRole("dialog", { name: "Save the token" }).waitFor();
}

test("a viewer sees tokens, who minted them, and projects, without buttons to change them", async () => {
  const owner = await pages.api.owner();
  await mintToken(owner, { name: "laptop" });
  const viewer = await pages.api.colleague(owner, "viewer");
  const page = await pages.openAs(viewer.email, "/tokens");
  await getRow(page, "laptop").getByText(`by ${owner.email}`).waitFor();
  expect(await page.getByRole("button", { name: /Mint|Actions/ }).count()).toBe(0);
  expect(await findChangingCommands(page)).toEqual([]);
  await page.goto(`${pages.origin}/projects`);
  await getRow(page, "Default").waitFor();
  expect(await page.getByRole("button", { name: /Create|Actions/ }).count()).toBe(0);
  expect(await findChangingCommands(page)).toEqual([]);
});
