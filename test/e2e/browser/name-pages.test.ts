/** Reserved names in the dashboard, and the accessibility of their page and that of domains, in a real browser. */
import { expect, test } from "vitest";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import type { ReservedSubdomain } from "../../../protocol/schemas/domains/reserved-subdomains.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { findChangingCommands, findPageProblems } from "../../harness/browser/page-checks.ts";
import {
  answerDialog,
  chooseAction,
  clickButton,
  getDialog,
  getRow,
  getSection,
  usePages,
} from "../../harness/browser/pages.ts";
import { startApi, type Person } from "../../harness/server/api.ts";

const pages = usePages(() => startApi());

const newName = () => `name-${crypto.randomUUID().slice(0, 8)}`;

/** It waits for its DNS record. */
async function createDomain(owner: Person): Promise<CustomDomain> {
  const reply = await owner.post<CustomDomain>("/domains", { domain: `${newName()}.example` });
  return reply.body;
}

test("a name is reserved, leads to its tunnel, and its release can be undone", async () => {
  const owner = await pages.api.owner();
  const other = await pages.api.owner();
  const [taken, name] = [newName(), newName()];
  await other.post<ReservedSubdomain>("/reserved-subdomains", { subdomain: taken });
  const page = await pages.openAs(owner.email, "/names");
  await page.getByRole("heading", { name: "No name is reserved yet" }).waitFor();
  await clickButton(page, "Reserve a name");
  const dialog = getDialog(page);
  await dialog.getByLabel("Name").fill(taken);
  await dialog.getByRole("button", { name: "Reserve" }).click();
  await dialog.getByRole("alert").filter({ hasText: "is taken" }).waitFor();
  await dialog.getByLabel("Name").fill("no_name");
  await dialog.getByRole("button", { name: "Reserve" }).click();
  await dialog.getByText("It must have 1 to 63 lower-case letters").waitFor();
  await dialog.getByLabel("Name").fill(name);
  await answerDialog(page, "Reserve");
  const command = getRow(page, name).getByText(`underpass http 3000 --subdomain ${name}`);
  await command.waitFor();
  const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 1, subdomain: name });
  await getRow(page, name).getByRole("link", { name: tunnel.publicUrl }).waitFor();
  await command.waitFor({ state: "detached" });

  await clickButton(page, `Release ${name}`);
  await page.getByRole("heading", { name: "No name is reserved yet" }).waitFor();
  await clickButton(page, "Undo");
  await getRow(page, name).waitFor();
});

test("a viewer sees domains and names without buttons to change them", async () => {
  const owner = await pages.api.owner();
  const { domain } = await createDomain(owner);
  await owner.post<ReservedSubdomain>("/reserved-subdomains", { subdomain: newName() });
  const viewer = await pages.api.colleague(owner, "viewer");
  const page = await pages.openAs(viewer.email, "/domains");
  await getRow(page, domain).waitFor();
  const changes = /^(Add|Remove|Reserve|Release|Choose|I have|Actions)/;
  expect(await page.getByRole("button", { name: changes }).count()).toBe(0);
  expect(await findChangingCommands(page)).toEqual([]);
  await page.goto(`${pages.origin}/names`);
  await getSection(page, "1 name").getByText("not in use").waitFor();
  expect(await page.getByRole("button", { name: changes }).count()).toBe(0);
  expect(await findChangingCommands(page)).toEqual([]);
});

test("axe finds nothing on a bound domain and its dialog, which fit a narrow screen", async () => {
  const owner = await pages.api.owner();
  const { id, domain } = await createDomain(owner);
  const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
  // Without a look-up in the DNS.
  await pages.api.sql("update domains set verified_at = now() where id = $1", [id]);
  await owner.put(`/domains/${id}/bind`, { tunnel_id: tunnel.id });
  const page = await pages.openAs(owner.email, "/domains");
  await page.getByText("The DNS record for visitors").click();
  expect(await findPageProblems(page)).toEqual([]);
  await chooseAction(page, domain, "Choose another tunnel…");
  await page.getByLabel("Tunnel", { exact: true }).waitFor();
  expect(await findPageProblems(page)).toEqual([]);
});
