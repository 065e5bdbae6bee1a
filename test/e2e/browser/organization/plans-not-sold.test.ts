/** What the pages say about plans on a server that sells none, in a real browser. */
import { expect, test } from "vitest";
import { findPageProblems } from "../../../harness/browser/page-checks.ts";
import { clickButton, getSection, usePages } from "../../../harness/browser/pages.ts";
import { startApi } from "../../../harness/server/api.ts";

const pages = usePages(() => startApi());

test("the billing page has only what the organization's own plan includes, and nothing to buy", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/billing");
  await getSection(page, "Plan and billing")
    .getByText("Billing is turned off on this server. Its operator sets the plan.")
    .waitFor();
  const table = getSection(page, "What your plan includes").getByRole("table");
  const rows = await table.getByRole("row").allInnerTexts();
  expect(rows.map((row) => row.split("\t").map((cell) => cell.trim()))).toEqual([
    ["Limit", "Enterprise\nYour plan"],
    ["Lifetime of a tunnel", "No expiry"],
    ["Reserved names", "Unlimited"],
    ["Requests and deliveries are stored for", "365 days"],
    ["Passwords for tunnels", "Yes"],
    ["Sign-in of visitors", "Yes"],
    ["Master keys", "Yes"],
  ]);
  const main = page.getByRole("main");
  expect(await main.getByText(/\$|Pro|Team|the plans/).count()).toBe(0);
  expect(await main.getByRole("button").count()).toBe(0);
  expect(await page.getByRole("link", { name: "Billing" }).count()).toBe(0);
  expect(await findPageProblems(page)).toEqual([]);
});

test("what a plan does not include names the operator, and no page offers other plans", async () => {
  const owner = await pages.api.owner();
  await owner.post("/reserved-subdomains", { subdomain: `reserved-${crypto.randomUUID()}` });
  await pages.api.sql("update organizations set plan = 'free' where id = $1", [owner.orgId]);
  const page = await pages.openAs(owner.email, "/names");
  await clickButton(page, "Reserve a name");
  await page.getByLabel("Name", { exact: true }).fill(`free-${crypto.randomUUID()}`);
  await clickButton(page, "Reserve");
  const alert = page.getByRole("alert").filter({ hasText: "The operator of this server" });
  await alert.waitFor();
  expect(await alert.getByRole("link").count()).toBe(0);
  await page.goto(pages.origin);
  await page.getByRole("note").filter({ hasText: "Reserved subdomains: 1" }).waitFor();
  expect(await page.getByRole("link", { name: "See the plans" }).count()).toBe(0);
});
