/** The live inspector of the dashboard, in a real browser. */
import type { Page, Route } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { waitUntil } from "../../../harness/server/api.ts";
import {
  NARROW,
  findAccessibilityProblems,
  findOverflow,
} from "../../../harness/browser/page-checks.ts";
import { clickButton, getSection, signIn, usePages } from "../../../harness/browser/pages.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { startInspectedSite, type InspectedSite } from "../../../harness/browser/inspected-site.ts";

let site: InspectedSite;
const pages = usePages(async () => {
  site = await startInspectedSite("inspected-pages");
  return site.api;
});
afterAll(() => site.close());

const getRows = (page: Page) => page.getByRole("grid", { name: "Requests" }).locator("[data-id]");
const getRow = (page: Page, text: string) => getRows(page).filter({ hasText: text });
const getParameter = (page: Page, name: string) => new URL(page.url()).searchParams.get(name);

test("the empty list shows a command, and the first request appears without a reload", async () => {
  const page = await pages.openAs(site.email, "/requests");
  await page.getByRole("heading", { name: "No requests yet" }).waitFor();
  await page.getByText(`underpass login --server ${pages.origin}`).waitFor();
  await site.visit("/first/201");
  await getRow(page, "/first/201").waitFor();
  await page.getByText("Live · 1 request").waitFor();
});

test("a filter is in the URL, and a link to it shows the same requests", async () => {
  await site.visit("/shop/200", "/shop/404", "/shop/500", "/health/200");
  const page = await pages.openAs(site.email, "/requests");
  await getRow(page, "/shop/500").waitFor();
  await page.getByLabel("Filter", { exact: true }).fill("path:/shop -status:404");
  await getRow(page, "/health").waitFor({ state: "detached" });
  expect(await getRows(page).allTextContents()).toHaveLength(2);
  await clickButton(page, "5xx");
  await getRow(page, "/shop/200").waitFor({ state: "detached" });
  await waitUntil(() => Promise.resolve(getParameter(page, "filter")?.includes("status:5xx")));
  const other = await pages.openAs(site.email, page.url().replace(pages.origin, ""));
  await getRow(other, "/shop/500").waitFor();
  expect(await getRows(other).count()).toBe(1);
  await other.getByText(/Live · 1 of \d+/).waitFor();

  await page.getByLabel("Filter", { exact: true }).fill("status:nine");
  await page.getByRole("alert").filter({ hasText: "nine is not a status" }).waitFor();
  expect(await getRows(page).count()).toBe(1);
});

test("requests differ by their queries, which are shown and searched, and a filter that finds nothing is cleared", async () => {
  await site.visit("/rand?n=1", "/rand?n=2", "/products?q=shoes");
  const page = await pages.openAs(site.email, "/requests");
  await getRow(page, "/rand?n=1").getByTitle("/rand?n=1").waitFor();
  const filter = page.getByLabel("Filter", { exact: true });
  await filter.fill("shoes");
  await getRow(page, "/rand?n=1").waitFor({ state: "detached" });
  await getRow(page, "/products?q=shoes").waitFor();
  await filter.fill("query:n=2");
  await getRow(page, "/rand?n=2").waitFor();
  expect(await getRows(page).count()).toBe(1);
  await filter.fill("query:n=3");
  await page.getByText("No request matches the filter.").waitFor();
  await clickButton(page, "Clear the filter");
  await getRow(page, "/rand?n=1").waitFor();
  expect(getParameter(page, "filter")).toBeNull();
});

test("paths in any language are readable, are found as they are typed, and are copied as they were sent", async () => {
  const sent = `/${encodeURIComponent("日本")}/a%2Fb?q=${encodeURIComponent("שלום")}`;
  await site.visit(sent, "/other");
  const page = await pages.openAs(site.email, "/requests");
  await getRow(page, "/日本/a%2Fb?q=שלום").getByTitle(sent).waitFor();
  await page.getByLabel("Filter", { exact: true }).fill("path:/日本 שלום");
  await getRow(page, "/other").waitFor({ state: "detached" });
  await getRow(page, "/日本").click();
  const detail = getSection(page, "Details of the request");
  await detail.getByText("/日本/a%2Fb?q=שלום").waitFor();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await detail.getByRole("button", { name: "Copy the URL" }).click();
  await detail.getByText("Copied").waitFor();
  const copied = await page.evaluate("navigator.clipboard.readText()");
  expect(copied).toBe(site.tunnel.agent.url.replace(/\/$/, "") + sent);
});

/** The list in a browser of its own, whose clock stands still: a typed filter is applied only when time passes. */
async function openWithStoppedClock(path: string): Promise<Page> {
  const page = await pages.open("/reset");
  await page.clock.install();
  await page.goto(`${pages.origin}/requests`);
  await signIn(page, site.email);
  await getRow(page, path).first().waitFor();
  await page.clock.pauseAt(Date.now() + 60_000);
  return page;
}

test("values are completed by the keyboard", async () => {
  await site.visit("/shop/404", "/shop/500");
  const page = await openWithStoppedClock("/shop/404");
  await page.getByLabel("Filter", { exact: true }).pressSequentially("st");
  await page.getByRole("option", { name: "status:" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.keyboard.type("40");
  await page.getByRole("option", { name: "status:404" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Tab");
  await page.clock.runFor(1_000);
  await getRow(page, "/shop/500").first().waitFor({ state: "detached" });
  expect(getParameter(page, "filter")).toBe("status:404");
});

test("a suggestion that is chosen before the typed text was applied stays in the field", async () => {
  await site.visit("/shop/404");
  const page = await openWithStoppedClock("/shop/404");
  const filter = page.getByLabel("Filter", { exact: true });
  await filter.pressSequentially("st");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.clock.runFor(1_000);
  expect([await filter.inputValue(), getParameter(page, "filter")]).toEqual(["status:", null]);
  await page.keyboard.type("404");
  await page.clock.runFor(1_000);
  await waitUntil(() => Promise.resolve(getParameter(page, "filter") === "status:404"));
  expect(await filter.inputValue()).toBe("status:404");
});

test("while the user reads older requests nothing moves, and new ones are counted", async () => {
  await site.visit(...Array.from({ length: 50 }, (_, number) => `/fill/${number}`));
  const page = await pages.openAs(site.email, "/requests");
  await getRow(page, "/fill/49").waitFor();
  await page.locator(".request-list").evaluate((list) => (list.scrollTop = 640));
  await page.getByText("Not following").waitFor();
  const middle = getRow(page, "/fill/25").first();
  const before = await middle.boundingBox();
  await site.visit("/late/1", "/late/2");
  await page.getByRole("button", { name: "2 new" }).waitFor();
  await page.getByText("Not following · 2 new").waitFor();
  expect(await middle.boundingBox()).toEqual(before);
  await clickButton(page, "2 new");
  await getRow(page, "/late/2").waitFor();

  await clickButton(page, "Pause");
  await site.visit("/paused/1");
  await page.getByRole("button", { name: "1 new" }).waitFor();
  expect(await getRow(page, "/paused/1").count()).toBe(0);
  await clickButton(page, "Resume");
  await getRow(page, "/paused/1").waitFor();
  await clickButton(page, "Clear");
  await getRows(page).first().waitFor({ state: "detached" });
  await site.visit("/after-clear");
  await getRow(page, "/after-clear").waitFor();
  await clickButton(page, "Show them");
  await getRow(page, "/paused/1").waitFor();
});

test("the keyboard alone finds, opens, bookmarks and marks requests", async () => {
  await site.visit("/keys/1", "/keys/2", "/keys/3");
  const page = await pages.openAs(site.email, "/requests");
  await getRow(page, "/keys/3").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("path:/keys/ ");
  await page.keyboard.press("Enter");
  await getRow(page, "/after-clear").waitFor({ state: "detached" });
  await page.keyboard.press("Home");
  await page.keyboard.press("j");
  await page.keyboard.press("b");
  await getRow(page, "/keys/2").getByRole("img", { name: "Bookmarked" }).waitFor();
  await page.keyboard.press("Enter");
  const detail = getSection(page, "Details of the request");
  await detail.getByText("/keys/2").first().waitFor();
  await page.keyboard.press("j");
  await detail.getByText("/keys/1").first().waitFor();
  await page.keyboard.press("Escape");
  await detail.waitFor({ state: "detached" });
  expect(getParameter(page, "selected")).toBeNull();

  await page.keyboard.press("k");
  await page.keyboard.press("x");
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.getByText("Two requests are marked.").waitFor();
  await page.keyboard.press("m");
  await page.getByRole("menuitem", { name: "Remove the mark" }).waitFor();
  // The second key arrives while the closed menu still has the focus.
  await page.keyboard.press("Escape");
  await page.keyboard.press("d");
  await page.waitForURL(/\/requests\/[0-9a-f-]{36}\?compare=[0-9a-f-]{36}$/);
  const [older = "", newer = ""] = page.url().split("/").at(-1)!.split("?compare=");
  expect(older < newer).toBe(true);
  await page.getByRole("link", { name: "All requests" }).click();
  await page.waitForURL(/\/requests\?filter=path/);
  await clickButton(page, "★ Bookmarked");
  await getRow(page, "/keys/3").waitFor({ state: "detached" });
  expect(await getRows(page).count()).toBe(1);
  await page.reload();
  await getRow(page, "/keys/2").waitFor();
});

test("Back closes the details, however many were opened, and on a phone the link to them is the request's page", async () => {
  await site.visit("/back/1", "/back/2");
  const page = await pages.openAs(site.email, "/requests?filter=path%3A%2Fback");
  await getRow(page, "/back/1").click();
  await getRow(page, "/back/2").click();
  const detail = getSection(page, "Details of the request");
  await detail.getByText("/back/2").first().waitFor();
  const link = page.url();
  await page.goBack();
  await detail.waitFor({ state: "detached" });
  expect(getParameter(page, "filter")).toBe("path:/back");
  await page.setViewportSize(NARROW);
  await page.goto(link);
  await page.waitForURL(/\/requests\/[0-9a-f-]{36}$/);
});

test("the width of the list is changed by the keyboard and remembered", async () => {
  await site.visit("/width");
  const page = await pages.openAs(site.email, "/requests");
  await getRows(page).first().click();
  const line = page.getByRole("separator", { name: "Width of the list" });
  await line.focus();
  await page.keyboard.press("ArrowLeft");
  expect(await line.getAttribute("aria-valuenow")).toBe("36");
  await page.reload();
  await line.waitFor();
  expect(await line.getAttribute("aria-valuenow")).toBe("36");
});

test("a text is searched in bodies, and the search says how much it has searched", async () => {
  await site.visit("/needle/1");
  const page = await pages.openAs(site.email, "/requests?filter=path%3A%2Fneedle");
  await getRow(page, "/needle/1").waitFor();
  await clickButton(page, "Search in bodies");
  await page.getByLabel("Search in bodies").fill("ASKED FOR /NEEDLE");
  await page.keyboard.press("Enter");
  await page.getByText("1 found in 1 of the newest 1 requests").waitFor();
  const loading = Promise.withResolvers<void>();
  await page.route(/\/inspector\/[0-9a-f-]{36}$/, async (route) => {
    await loading.promise;
    await route.continue();
  });
  await page.getByLabel("Search in bodies").fill("something else");
  await page.keyboard.press("Enter");
  await page.getByText("Searching…").waitFor();
  loading.resolve();
  await page.getByText("0 found in 1 of the newest 1 requests").waitFor();
  await page.getByText("No body contains this text.").waitFor();
});

test("a search in bodies is canceled: nothing more is loaded, and what it has found stays listed", async () => {
  await site.visit(...Array.from({ length: 10 }, (_, number) => `/cancel/${number}`));
  const page = await pages.openAs(site.email, "/requests?filter=path%3A%2Fcancel");
  await getRow(page, "/cancel/9").waitFor();
  let loads = 0;
  const held: Route[] = [];
  await page.route(/\/inspector\/[0-9a-f-]{36}$/, async (route) => {
    loads += 1;
    if (loads > 3) held.push(route);
    else await route.continue();
  });
  await clickButton(page, "Search in bodies");
  await page.getByLabel("Search in bodies").fill("asked for");
  await page.keyboard.press("Enter");
  await page.getByText("3 found in 3 of the newest 10 requests").waitFor();
  await expect.poll(() => getRows(page).count(), WAIT_OPTIONS).toBe(3);
  const aborted: string[] = [];
  page.on("requestfailed", (request) => aborted.push(request.failure()?.errorText ?? ""));
  await page.getByRole("button", { name: "Cancel" }).press("Enter");
  await page.getByText("3 found in 3 of the newest 10 requests, canceled").waitFor();
  await expect.poll(() => aborted, WAIT_OPTIONS).toEqual(held.map(() => "net::ERR_ABORTED"));
  expect(await getRows(page).count()).toBe(3);
  expect(loads).toBe(3 + held.length);

  await page.unrouteAll();
  // The field has the focus again.
  await page.keyboard.press("Enter");
  await page.getByText("10 found in 10 of the newest 10 requests").waitFor();
});

test("the listed requests are downloaded as an archive", async () => {
  await site.visit("/archive/1");
  const page = await pages.openAs(site.email, "/requests?filter=path%3A%2Farchive");
  await getRow(page, "/archive/1").waitFor();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    clickButton(page, "Download as HAR"),
  ]);
  expect(download.suggestedFilename()).toBe("underpass.har");
  await page.getByText("1 of the newest listed requests").waitFor();
});

test("the inspector is docked on other pages, and connects only while it is open", async () => {
  const page = await pages.openAs(site.email, "/members");
  const sockets: string[] = [];
  page.on("websocket", (socket) => sockets.push(socket.url()));
  await getSection(page, "Members").getByText(site.email).waitFor();
  expect(sockets).toEqual([]);
  await page.keyboard.press("i");
  const dock = getSection(page, "Inspector");
  await dock.getByText(/^Live/).waitFor();
  await site.visit("/docked/1");
  await getRow(page, "/docked/1").waitFor();
  expect(sockets).toHaveLength(1);
  await page.getByRole("link", { name: "Audit log" }).click();
  await getRow(page, "/docked/1").waitFor();
  await page.keyboard.press("i");
  await dock.waitFor({ state: "detached" });
});

test("requests that can't be trusted are shown as text", async () => {
  const long = `/long/${"x".repeat(3_000)}`;
  const html = "/<img%20src=x%20onerror=alert(1)>";
  const page = await pages.openAs(site.email, "/requests");
  await site.tunnel.visit(html, {}, "GET");
  await site.tunnel.visit(long, {}, "GET");
  await site.tunnel.visit("/%E2%80%AEgnp.exe", {}, "GET");
  // Not encoded, as browsers never send it.
  await site.tunnel.visit(Buffer.from("/raw\u202egnp.exe").toString("latin1"), {}, "GET");
  await getRow(page, "/%E2%80%AEgnp.exe").waitFor();
  await getRow(page, "/rawU+202Egnp.exe").waitFor();
  await getRow(page, "/long/").waitFor();
  await getRow(page, "onerror").waitFor();
  expect(await page.locator("img").count()).toBe(0);
  await page.setViewportSize(NARROW);
  expect(await findOverflow(page)).toEqual([]);
  await getRow(page, "/long/").click();
  await page.waitForURL(/\/requests\/[0-9a-f-]{36}$/);
});

test("axe finds nothing", async () => {
  await site.visit("/axe/404", "/axe/200");
  const page = await pages.openAs(site.email, "/requests");
  await getRows(page).nth(1).click();
  await getSection(page, "Details of the request").getByText("Visitor").waitFor();
  await clickButton(page, "Search in bodies");
  await page.getByLabel("Filter", { exact: true }).fill("status:");
  await page.getByRole("option").first().waitFor();
  expect(await findAccessibilityProblems(page)).toEqual([]);
  await page.getByRole("grid").focus();
  await page.keyboard.press("m");
  await page.getByRole("menu", { name: "Actions" }).waitFor();
  expect(await findAccessibilityProblems(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.getByRole("menu", { name: "Actions" }).waitFor({ state: "detached" });
  await page.keyboard.press("?");
  const title = page.getByRole("dialog").getByRole("heading", { name: "Keyboard shortcuts" });
  await title.and(page.locator(":focus")).waitFor();
  expect(await findAccessibilityProblems(page)).toEqual([]);
});
