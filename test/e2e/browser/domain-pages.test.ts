/** Custom domains in the dashboard, in a real browser. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { startResolver, type Resolver } from "../../harness/fakes/resolver.ts";
import { startApi, type Person } from "../../harness/server/api.ts";
import {
  answerDialog,
  chooseAction,
  clickButton,
  getDialog,
  getRow,
  getSection,
  usePages,
} from "../../harness/browser/pages.ts";

const pages = usePages(() => startApi());

let resolver: Resolver;
beforeAll(async () => {
  resolver = await startResolver(pages.api.fakePorts.resolver);
});
afterAll(() => resolver?.[Symbol.asyncDispose]());

const newName = () => `name-${crypto.randomUUID().slice(0, 8)}`;
const publish = (domain: string, value: string) => {
  resolver.records[`_svc-challenge.${domain}`] = [value];
};

async function createDomain(owner: Person, isVerified = true): Promise<CustomDomain> {
  const { body } = await owner.post<CustomDomain>("/domains", { domain: `${newName()}.example` });
  if (!isVerified) return body;
  publish(body.domain, body.verificationToken);
  return (await owner.post<CustomDomain>(`/domains/${body.id}/verify`)).body;
}

test("a domain is added and verified as soon as its record is there, without a reload", async () => {
  const owner = await pages.api.owner();
  const domain = `${newName()}.example`;
  const page = await pages.openAs(owner.email, "/domains");
  await page.getByRole("heading", { name: "No domain has been added yet" }).waitFor();
  await clickButton(page, "Add a domain");
  const dialog = getDialog(page);
  await dialog.getByLabel("Domain").fill("localhost");
  await dialog.getByRole("button", { name: "Add" }).click();
  await dialog.getByRole("alert").filter({ hasText: "must contain a dot" }).waitFor();
  await dialog.getByLabel("Domain").fill(domain);
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });

  const waiting = getSection(page, "Waiting for their DNS record");
  await waiting.getByText(`_svc-challenge.${domain}`, { exact: true }).waitFor();
  await waiting.getByRole("button", { name: "Copy the value of the TXT record" }).waitFor();
  await clickButton(page, "I have published the record");
  await waiting.getByText("There is no TXT record at").waitFor();
  publish(domain, "another value");
  await clickButton(page, "Check now");
  await waiting.getByText("has the right value").waitFor();
  const { body } = await owner.get<CustomDomain[]>("/domains");
  publish(domain, body[0]!.verificationToken);
  await getSection(page, "Verified").getByText(domain).waitFor();
  await page.getByText(`${domain} is verified.`).waitFor();
});

test("a verified domain is bound to a tunnel, unbound with undo, and removed by its name", async () => {
  const owner = await pages.api.owner();
  const { id, domain } = await createDomain(owner);
  const page = await pages.openAs(owner.email, "/domains");
  await clickButton(page, `Choose the tunnel of ${domain}`);
  const dialog = getDialog(page);
  await dialog.getByText(`underpass http 3000 --url https://${domain}`).waitFor();
  const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
  await owner.post<Tunnel>("/tunnels", { localPort: 1, protocol: "tcp" });
  // The tunnels are loaded again while the dialog is open.
  await page.getByLabel("Tunnel", { exact: true }).selectOption(tunnel.id);
  expect(await page.getByLabel("Tunnel", { exact: true }).getByRole("option").count()).toBe(1);
  await answerDialog(page, "Save");
  const link = getRow(page, domain).getByRole("link", { name: tunnel.name, exact: true });
  await link.waitFor();
  await page.getByText("The DNS record for visitors").click();
  await page.getByText(new URL(tunnel.publicUrl).hostname, { exact: true }).waitFor();

  await chooseAction(page, domain, `Unbind from ${tunnel.name}`);
  await getRow(page, domain).getByText("Leads to no tunnel yet").waitFor();
  await clickButton(page, "Undo");
  await link.waitFor();

  await chooseAction(page, domain, "Remove…");
  await page.getByLabel(`Type ${domain} to confirm`).fill(domain);
  await answerDialog(page, "Remove");
  await page.getByRole("heading", { name: "No domain has been added yet" }).waitFor();
  expect(await owner.delete(`/domains/${id}`)).toMatchObject({ status: 404 });
});

test("a domain that is not verified is removed after a confirmation", async () => {
  const owner = await pages.api.owner();
  const { domain } = await createDomain(owner, false);
  const page = await pages.openAs(owner.email, "/domains");
  await chooseAction(page, domain, "Remove…");
  await answerDialog(page, "Remove");
  await page.getByRole("heading", { name: "No domain has been added yet" }).waitFor();
});

test("a domain whose record is missing says so, and recovers", async () => {
  const owner = await pages.api.owner();
  const { id, domain } = await createDomain(owner);
  await pages.api.sql("update domains set proof_missing_since = now() where id = $1", [id]);
  const page = await pages.openAs(owner.email, "/domains");
  await getRow(page, domain).getByText("record missing").waitFor();
  await clickButton(page, "I have published the record");
  await getRow(page, domain).getByText("verified", { exact: true }).waitFor();
});
