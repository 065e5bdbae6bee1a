/** The palette, which finds anything, by keyboard alone. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { mintToken, startApi, type Person } from "../../../harness/server/api.ts";
import {
  findAccessibilityProblems,
  findPageProblems,
} from "../../../harness/browser/page-checks.ts";
import { clickButton, getSection, usePages } from "../../../harness/browser/pages.ts";

const pages = usePages(() => startApi());

const getField = (page: Page) => page.getByRole("combobox", { name: "Find anything" });
const getActive = (page: Page) => page.locator("[role=option][data-highlighted]");

async function openPalette(page: Page): Promise<void> {
  await page.keyboard.press("Control+k");
  await getField(page).waitFor();
}

async function findAndEnter(page: Page, text: string, title: string): Promise<void> {
  await openPalette(page);
  await page.keyboard.type(text);
  await getActive(page).filter({ hasText: title }).waitFor();
  await page.keyboard.press("Enter");
  await getField(page).waitFor({ state: "detached" });
}

async function createThings(owner: Person): Promise<Tunnel> {
  const subdomain = `staging-shop-${crypto.randomUUID().slice(0, 8)}`;
  const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 3000, subdomain });
  await mintToken(owner, { name: "<b>CI</b> string" });
  return tunnel;
}

test("pages, tunnels and tokens are found by keyboard alone", async () => {
  const owner = await pages.api.owner();
  const tunnel = await createThings(owner);
  const page = await pages.openAs(owner.email);
  await findAndEnter(page, "audit", "Audit log");
  await page.getByRole("heading", { level: 1, name: "Audit log" }).waitFor();
  await findAndEnter(page, "stag shop", tunnel.name);
  await page.waitForURL(`${pages.origin}/tunnels/${tunnel.id}`);
  await findAndEnter(page, "<b>ci", "<b>CI</b>");
  await page.waitForURL(`${pages.origin}/tokens`);
  await findAndEnter(page, "rsvnms", "Reserved names");
  await page.waitForURL(`${pages.origin}/names`);

  await openPalette(page);
  await page.keyboard.press("ArrowDown");
  await getActive(page).filter({ hasText: "Requests" }).waitFor();
  await page.keyboard.type("zzzzqq");
  await page.getByText("No results.").waitFor();
  await page.keyboard.press("Escape");
  await getField(page).waitFor({ state: "detached" });
});

test("actions run: a person is invited, the appearance of all tabs changes, the user is signed out", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email);
  await findAndEnter(page, "invite", "Invite a person");
  await page.getByRole("dialog", { name: /^Invite a person to/ }).waitFor();
  expect(new URL(page.url()).search).toBe("?dialog=invite");
  await clickButton(page, "Cancel");
  await page.waitForURL(`${pages.origin}/members`);
  const otherTab = await page.context().newPage();
  await otherTab.goto(`${pages.origin}/audit`);
  await otherTab.locator('html[data-theme="system"]').waitFor();
  await page.bringToFront();
  await findAndEnter(page, "dark", "Use the dark appearance");
  expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
  await otherTab.locator('html[data-theme="dark"]').waitFor();
  await findAndEnter(page, "sign out", "Sign out");
  await page.getByRole("status").filter({ hasText: "You have been signed out." }).waitFor();
});

test("another organization is switched to; a viewer is offered no action that the API refuses", async () => {
  const owner = await pages.api.owner();
  const { body } = await owner.post<{ name: string }>("/orgs", { name: "Analytical Engines" });
  const viewer = await pages.api.colleague(owner, "viewer");
  const page = await pages.openAs(owner.email, "/members");
  await findAndEnter(page, "engines", `Switch to ${body.name}`);
  await page.getByRole("banner").getByRole("button", { name: body.name }).waitFor();
  await getSection(page, "Members").getByText(owner.email).waitFor();

  const viewerPage = await pages.openAs(viewer.email);
  await openPalette(viewerPage);
  expect(await viewerPage.getByRole("option", { name: "Invite a person" }).count()).toBe(0);
  expect(await viewerPage.getByRole("option", { name: "Billing" }).count()).toBe(0);
});

test("axe finds nothing in it", async () => {
  const owner = await pages.api.owner();
  await createThings(owner);
  const page = await pages.openAs(owner.email);
  await page.getByRole("button", { name: "Find anything" }).click();
  await page.getByRole("option").first().waitFor();
  expect(await findAccessibilityProblems(page)).toEqual([]);
  await page.keyboard.type("c");
  await page.getByRole("option", { name: "<b>CI</b> string" }).waitFor();
  expect(await findPageProblems(page)).toEqual([]);
});
