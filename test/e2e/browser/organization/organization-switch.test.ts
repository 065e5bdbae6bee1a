/** Data of the organization before is never shown after a switch to another one. */
import type { Page, Route } from "playwright-core";
import { expect, test } from "vitest";
import type { Organization } from "../../../../protocol/schemas/organizations/organizations.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { mintToken, startApi, type Person } from "../../../harness/server/api.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { clickButton, getSection, usePages } from "../../../harness/browser/pages.ts";
import { serveTunnel, storeTraffic } from "../../../harness/browser/traffic.ts";

const pages = usePages(() => startApi());

async function createOtherOrganization(owner: Person): Promise<string> {
  const { body } = await owner.post<{ name: string }>("/orgs", { name: "Analytical Engines" });
  return body.name;
}

async function switchTo(page: Page, name: string): Promise<void> {
  await page.getByRole("banner").getByRole("button").first().click();
  await page.getByRole("menuitemradio", { name }).click();
}

test("organizations are sorted by name, and typing the beginning of one moves to it", async () => {
  const owner = await pages.api.owner();
  for (const name of ["Tidal", "aqueduct", "Nile"]) await owner.post("/orgs", { name });
  const page = await pages.openAs(owner.email);
  await page.getByRole("banner").getByRole("button").first().click();
  const items = page.getByRole("menuitemradio").locator("bdi");
  await items.first().waitFor();
  const [, ...others] = (await items.allTextContents()).toSorted((a) =>
    a.startsWith("person") ? -1 : 1,
  );
  expect(others).toEqual(["aqueduct", "Nile", "Tidal"]);
  await page.keyboard.type("tid");
  await page.getByRole("menuitemradio", { name: "Tidal" }).and(page.locator(":focus")).waitFor();
});

test("a menu of more organizations than the screen has room for opens at the active one, with the mouse and with a key", async () => {
  const owner = await pages.api.owner();
  for (let count = 0; count < 9; count += 1) await owner.post("/orgs", { name: `Branch ${count}` });
  const page = await pages.openAs(owner.email);
  await page.setViewportSize({ width: 320, height: 360 });
  const trigger = page.getByRole("banner").getByRole("button", { name: /^person/ });
  const active = page.getByRole("menuitemradio", { checked: true });
  for (const open of [() => trigger.click(), () => trigger.press("Enter")]) {
    await open();
    await active.and(page.locator(":focus")).waitFor();
    expect(await isInMenu(page)).toBe(true);
    await page.keyboard.press("Escape");
    await active.waitFor({ state: "detached" });
  }
});

/** Whether the focused item is in the visible part of its menu. */
function isInMenu(page: Page): Promise<boolean> {
  return page.evaluate<boolean>(`(() => {
    const item = document.activeElement.getBoundingClientRect();
    const menu = document.activeElement.closest(".menu").getBoundingClientRect();
    return item.top >= menu.top && item.bottom <= menu.bottom;
  })()`);
}

test("a late response of the organization before is never shown in the next one", async () => {
  const owner = await pages.api.owner();
  const name = await createOtherOrganization(owner);
  await mintToken(owner, { name: "secret of the first" });
  const page = await pages.openAs(owner.email, "/members");
  const delayed: Route[] = [];
  await page.route(/\/(events|tokens)(\?|$)/, async (route) => {
    if (route.request().isNavigationRequest() || delayed.length === 2) return route.continue();
    delayed.push(route);
  });
  await page.getByRole("link", { name: "Audit log" }).click();
  await expect.poll(() => delayed.length, WAIT_OPTIONS).toBe(2);
  await switchTo(page, name);
  await page.getByRole("banner").getByRole("button", { name }).waitFor();
  await getSection(page, "Events").getByText("switched to the organization").waitFor();
  await Promise.all(delayed.map((route) => route.continue()));
  // The page has seen them when a later request of the same connection has been answered.
  await page.evaluate("fetch('/health').then((response) => response.text())");
  expect(await getSection(page, "Events").getByText("secret of the first").count()).toBe(0);
  expect(await getSection(page, "Events").getByRole("listitem").count()).toBe(2);
});

test("after a switch, the requests, the palette and the metrics have nothing of the organization before", async () => {
  const [owner, other] = [await pages.api.owner(), await pages.api.owner()];
  await pages.api.sql("insert into memberships (org_id, user_id, role) values ($1, $2, 'member')", [
    other.orgId,
    owner.userId,
  ]);
  const { body: organizations } = await other.get<{ name: string }[]>("/orgs");
  await using before = await serveTunnel(pages.api, owner, "switched-from");
  await using after = await serveTunnel(pages.api, other, "switched-to");
  await before.visit("/before/1");
  await storeTraffic(pages.api, owner, { tunnelId: before.id, minutesAgo: 30, requests: 7_000 });
  await storeTraffic(pages.api, other, { tunnelId: after.id, minutesAgo: 30, requests: 20 });
  const page = await pages.openAs(owner.email, "/metrics");
  await getRequestCount(page, /^Requests 7,00\d$/).waitFor();
  await page.getByRole("link", { name: "Requests", exact: true }).click();
  const rows = page.getByRole("grid", { name: "Requests" }).locator("[data-id]");
  await rows.filter({ hasText: "/before/1" }).click();
  const details = getSection(page, "Details of the request");
  await details.getByRole("heading", { name: "/before/1" }).waitFor();
  const delayed: Route[] = [];
  await page.route(/\/(inspector\?limit=200|tunnels)$/, async (route) => {
    if (delayed.length === 2) await route.continue();
    else delayed.push(route);
  });
  await page.keyboard.press("Control+k");
  await expect.poll(() => delayed.length, WAIT_OPTIONS).toBe(2);
  await page.keyboard.press("Escape");

  const { name = "" } = organizations[0] ?? {};
  await switchTo(page, name);
  await page.getByRole("banner").getByRole("button", { name }).waitFor();
  await page.getByText(/^Live/).waitFor();
  await Promise.all(delayed.map((route) => route.continue()));
  await before.visit("/before/2");
  await after.visit("/after/1");
  await rows.filter({ hasText: "/after/1" }).waitFor();
  expect(await rows.count()).toBe(1);
  await details.getByRole("heading", { name: "belongs to another of your organ" }).waitFor();
  expect(await page.getByText("/before/").count()).toBe(0);

  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Find anything" }).fill("switched");
  await page.getByRole("option", { name: "switched-to" }).first().waitFor();
  expect(await page.getByRole("option", { name: "switched-from" }).count()).toBe(0);
  await page.getByRole("combobox", { name: "Find anything" }).fill("GET /");
  await page.getByRole("option", { name: "/after/1" }).waitFor();
  expect(await page.getByRole("option", { name: "/before" }).count()).toBe(0);
  await page.keyboard.press("Escape");

  await page.getByRole("link", { name: "Metrics" }).click();
  await getRequestCount(page, /^Requests 2[01]$/).waitFor();
  expect(await page.getByText("switched-from").count()).toBe(0);
});

test("a link to a resource of another organization offers to switch to it", async () => {
  const owner = await pages.api.owner();
  const name = await createOtherOrganization(owner);
  const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
  const { body: organization } = await owner.get<Organization>(`/orgs/${owner.orgId}`);
  const page = await pages.openAs(owner.email);
  await switchTo(page, name);
  const menu = page.getByRole("banner").getByRole("button", { name });
  await menu.waitFor();
  for (const path of [`/requests?tunnel_id=${tunnel.id}`, `/tunnels/${tunnel.id}?tab=access`]) {
    await page.goto(pages.origin + path);
    await page.getByRole("button", { name: `Switch to ${organization.name}` }).waitFor();
  }
  await clickButton(page, `Switch to ${organization.name}`);
  await page.getByRole("heading", { level: 1, name: tunnel.name }).waitFor();
  await page.getByRole("tab", { name: "Access", selected: true }).waitFor();
  await menu.waitFor({ state: "detached" });
});

const getRequestCount = (page: Page, name: RegExp) =>
  page.getByRole("group", { name: "Metric of the chart" }).getByRole("button", { name });
