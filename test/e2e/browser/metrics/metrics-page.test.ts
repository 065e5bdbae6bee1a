/** The page of metrics, in a real browser. */
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { mintToken, startApi, waitUntil, type Person } from "../../../harness/server/api.ts";
import { findOverflow } from "../../../harness/browser/page-checks.ts";
import { getSection, usePages } from "../../../harness/browser/pages.ts";
import { serveTunnel, storeTraffic, type ServedTunnel } from "../../../harness/browser/traffic.ts";

const pages = usePages(() => startApi());

let owner: Person;
let shop: ServedTunnel;
let quietId: string;
beforeAll(async () => {
  owner = await pages.api.owner();
  shop = await serveTunnel(pages.api, owner, "charted");
  const quiet = await owner.post<{ id: string }>("/tunnels", {
    localPort: 1,
    subdomain: "charted-quiet",
  });
  quietId = quiet.body.id;
  for (const path of ["/orders", "/orders", "/status/404", "/status/503"]) await shop.visit(path);
  await storeTraffic(pages.api, owner, { tunnelId: shop.id, minutesAgo: 30, requests: 1_000 });
  await storeTraffic(pages.api, owner, { tunnelId: shop.id, minutesAgo: 600, requests: 500 });
  await storeTraffic(pages.api, owner, { tunnelId: quietId, minutesAgo: 30, requests: 20 });
  const { nonce, id } = await mintToken(owner, { name: "<b>ci</b>" });
  await owner.put(`/tokens/${nonce}/budget`, { monthlyBudgetUsdCents: 400 });
  await pages.api.sql(
    "insert into token_usage select $1, to_char(now() at time zone 'utc', 'YYYY-MM'), $2, 30e9, 7",
    [id, shop.id],
  );
});
afterAll(() => shop?.[Symbol.asyncDispose]());

const getMetric = (page: Page, name: RegExp) =>
  page.getByRole("group", { name: "Metric of the chart" }).getByRole("button", { name });

test("the sums, the chart and the table follow the period and the tunnel, which are in the URL", async () => {
  const page = await pages.openAs(owner.email, "/metrics");
  await getMetric(page, /^Requests 1,52\d$/).waitFor();
  await page.getByRole("button", { name: "1 hour" }).click();
  await getMetric(page, /^Requests 1,02\d$/).waitFor();
  await page.getByLabel("Tunnel", { exact: true }).selectOption("charted-quiet");
  await getMetric(page, /^Requests 20$/).waitFor();
  await getMetric(page, /^Sent to visitors 40 kB$/).click();
  await page.getByText("Show as a table").click();
  const table = page.getByRole("table", { name: "Traffic over time, newest first" });
  await table.getByRole("cell", { name: "40 kB" }).waitFor();
  expect(await table.getByRole("row").count()).toBe(61);
  await waitUntil(async () => (await page.locator(".chart canvas").count()) === 1);

  const query = new URL(page.url()).searchParams;
  expect(Object.fromEntries(query)).toEqual({
    window: "1h",
    tunnel_id: quietId,
    metric: "bytes_out",
  });
  await page.reload();
  await getMetric(page, /^Sent to visitors 40 kB$/).waitFor();
  expect(await getMetric(page, /^Sent/).getAttribute("aria-pressed")).toBe("true");
  expect(await page.getByLabel("Tunnel", { exact: true }).inputValue()).toBe(quietId);
});

test("each value of the chart can be read with the keyboard, also after the colors have changed", async () => {
  const page = await pages.openAs(owner.email, "/metrics?window=1h");
  const chart = page.getByRole("slider", { name: "Requests over time" });
  await chart.focus();
  const values: (string | null)[] = [];
  for (let at = 0; at < 60; at += 1) {
    await page.keyboard.press("ArrowLeft");
    values.push(await chart.getAttribute("aria-valuetext"));
  }
  expect(values.filter((value) => value?.endsWith(": 1,020"))).toHaveLength(1);
  await page.keyboard.press("Home");
  expect(await chart.getAttribute("aria-valuenow")).toBe("0");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.keyboard.press("End");
  expect(await chart.getAttribute("aria-valuenow")).toBe("59");
  await waitUntil(async () => (await page.locator(".chart canvas").count()) === 1);
});

/** Notes where texts on canvases end, beyond the right edge. */
const WATCH_LABELS = `
  window.beyondEdge = [];
  window.labels = 0;
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const width = this.measureText(text).width;
    const end = x + (this.textAlign === "center" ? width / 2 : this.textAlign === "right" ? 0 : width);
    labels += 1;
    if (end > this.canvas.width) beyondEdge.push(text);
    fillText.call(this, text, x, y);
  };
`;

test("the last label of the axis of time is shown in full", async () => {
  const page = await pages.openAs(owner.email, "/me");
  // As at midnight: the axis ends with a label.
  await page.route("**/metrics/timeseries?*", async (route) => {
    const response = await route.fetch();
    const points = (await response.json()) as { timestamp: string }[];
    const [last, before] = [points.at(-1)!, points.at(-2)!].map((each) =>
      Date.parse(each.timestamp),
    );
    const shiftMs = new Date("2026-03-02T00:00:00").getTime() - (2 * last! - before!);
    const json = points.map((point) => ({
      ...point,
      timestamp: new Date(Date.parse(point.timestamp) + shiftMs).toISOString(),
    }));
    await route.fulfill({ response, json });
  });
  await page.addInitScript(WATCH_LABELS);
  await page.goto(`${pages.origin}/metrics?window=24h`);
  await waitUntil(async () => (await page.evaluate<number>("labels")) > 0);
  await page.getByRole("slider", { name: "Requests over time" }).focus();
  await page.keyboard.press("ArrowLeft");
  expect(await page.evaluate("beyondEdge")).toEqual([]);
});

test("captured requests are broken down by status, cause, latency, tunnel and path, with links to them", async () => {
  const page = await pages.openAs(owner.email, "/metrics");
  const responses = getSection(page, "Responses").getByRole("listitem");
  expect(await responses.allTextContents()).toEqual([
    "2xx, success2",
    "4xx, refused or not found1",
    "5xx, errors1",
  ]);
  const causes = getSection(page, "Errors by cause").getByRole("listitem");
  expect(await causes.allTextContents()).toEqual(["5xx of the local server1"]);
  await getSection(page, "Latency")
    .getByText(/^50% within .* · 95% within /)
    .waitFor();
  const tunnels = getSection(page, "Busiest tunnels").getByRole("listitem");
  expect(
    (await tunnels.allTextContents()).map((text) => text.replace(/[\d.,]+ .B.*$/, "")),
  ).toEqual(["charted", "charted-quiet"]);
  const row = getSection(page, "Busiest paths").getByRole("row", { name: "/status/503" });
  await row.getByRole("cell", { name: "100%" }).waitFor();
  await row.getByRole("link").click();
  await page.waitForURL((url) => url.pathname === "/requests");
  expect(Object.fromEntries(new URL(page.url()).searchParams)).toMatchObject({
    filter: "path:/status/503",
    tunnel_id: shop.id,
  });
});

test("a bar is as high as its entry, also when the styles of the inspector are loaded", async () => {
  const page = await pages.openAs(owner.email, "/metrics");
  await page.keyboard.press("i");
  await getSection(page, "Inspector").waitFor();
  const heights = await page.evaluate<{ entry: number; bar: number }[]>(`
    [...document.querySelectorAll(".bar-list li")].map((entry) =>
      ({ entry: entry.clientHeight, bar: entry.firstElementChild.clientHeight }))
  `);
  expect(heights.length).toBeGreaterThan(3);
  expect(heights.filter(({ entry, bar }) => bar !== entry)).toEqual([]);
});

test("the usage of a month lists what each token spent of its budget", async () => {
  const page = await pages.openAs(owner.email, "/metrics");
  const usage = getSection(page, "Usage and cost");
  await usage.getByText("$3.00", { exact: true }).first().waitFor();
  const row = usage.getByRole("row", { name: "<b>ci</b>" });
  const meter = row.getByRole("meter", { name: "Spent of the budget of <b>ci</b>" });
  expect(await meter.getAttribute("aria-valuenow")).toBe("75");
  await pages.api.sql(
    "update organizations set created_at = now() - interval '70 days' where id = $1",
    [owner.orgId],
  );
  await page.reload();
  const months = usage.getByLabel("Month").getByRole("option");
  await waitUntil(async () => (await months.count()) >= 3);
  await usage.getByLabel("Month").selectOption({ index: 1 });
  await usage.getByText("$0.00", { exact: true }).first().waitFor();
  expect(new URL(page.url()).searchParams.get("month")).toMatch(/^\d{4}-\d\d$/);
});

test("the tokens of a month are sorted by their traffic, however new they are", async () => {
  const { id } = await mintToken(owner, { name: "newest" });
  await pages.api.sql(
    "update tokens set issued_at = issued_at + interval '1 minute' where id = $1",
    [id],
  );
  const page = await pages.openAs(owner.email, "/metrics");
  const rows = getSection(page, "Usage and cost").getByRole("row");
  await rows.filter({ hasText: "newest" }).waitFor();
  const names = (await rows.allInnerTexts()).map((row) => row.split("\t", 1)[0]?.trim());
  expect(names.slice(0, 2)).toEqual(["Token", "<b>ci</b>"]);
});

test("selected rows of a table are copied as tab-separated text, without buttons and hidden text", async () => {
  const page = await pages.openAs(owner.email, "/metrics");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const usage = getSection(page, "Usage and cost");
  await usage.getByRole("row", { name: "<b>ci</b>" }).waitFor();
  await page.evaluate(
    `getSelection().selectAllChildren([...document.querySelectorAll("table")].at(-1))`,
  );
  await page.keyboard.press("Control+c");
  const lines = (await page.evaluate<string>("navigator.clipboard.readText()")).split("\n");
  expect(lines).toContain("Token\tRequests\tTraffic\tCost\tSpent of the budget");
  expect(lines).toContain("<b>ci</b>\t7\t30 GB\t$3.00\t$3.00 of $4.00");
});

test("a tunnel of another organization is not found, and without tunnels there is a command to open one", async () => {
  const stranger = await pages.api.owner();
  const page = await pages.openAs(stranger.email, `/metrics?tunnel_id=${shop.id}`);
  await page.getByRole("heading", { name: "This tunnel does not exist" }).waitFor();
  await page.getByRole("link", { name: "Metrics" }).click();
  await page.getByRole("heading", { name: "No tunnel has had visitors yet" }).waitFor();
  await page.getByText(`underpass login --server ${pages.origin}`).waitFor();
});

test.each([390, 360])("the tables fit a phone of %d pixels", async (width) => {
  const page = await pages.openAs(owner.email, "/metrics");
  await page.setViewportSize({ width, height: 800 });
  await getSection(page, "Busiest paths").getByText("Mean latency").waitFor();
  await getSection(page, "Usage and cost")
    .getByRole("columnheader", { name: "Spent of the budget" })
    .waitFor();
  const hidden = await page.evaluate<number[]>(
    `[...document.querySelectorAll(".table-frame:has(.path-cell)")].map(
      (frame) => frame.scrollWidth - frame.clientWidth,
    )`,
  );
  expect(hidden.length).toBe(2);
  // A hidden title can take one pixel.
  for (const each of hidden) expect(each).toBeLessThanOrEqual(1);
});

test("the chart is drawn in a browser on a system without a locale, whose language is not valid", async () => {
  const page = await pages.openAs(owner.email, "/metrics");
  await page.addInitScript(() =>
    Object.defineProperty(Navigator.prototype, "language", { get: () => "en-US@posix" }),
  );
  await page.reload();
  await waitUntil(async () => (await page.locator(".chart canvas").count()) === 1);
});

test("the page fits the smallest screens", async () => {
  const page = await pages.openAs(owner.email, "/metrics");
  await page.setViewportSize({ width: 320, height: 700 });
  expect(await findOverflow(page)).toEqual([]);
});

test("a printed page is dark on light, without the navigation", async () => {
  const page = await pages.openAs(owner.email, "/metrics");
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  expect(await page.evaluate("getComputedStyle(document.body).color")).toBe("rgb(26, 30, 36)");
  expect(await page.getByRole("navigation").count()).toBe(0);
  await page.emulateMedia({ media: "screen", colorScheme: "light" });
});

test("on a large screen no breakdown is alone in its row, and a path has its tunnel in its line", async () => {
  const page = await pages.openAs(owner.email, "/metrics");
  await page.setViewportSize({ width: 1920, height: 1000 });
  const paths = getSection(page, "Busiest paths");
  await paths.getByText("Mean latency").waitFor();
  const getBox = async (element: Locator) => (await element.boundingBox())!;
  const responses = await getBox(getSection(page, "Responses"));
  const tunnels = await getBox(getSection(page, "Busiest tunnels"));
  expect(tunnels.x).toBeGreaterThan(responses.x);
  const path = await getBox(paths.getByRole("link").first());
  const name = await getBox(paths.locator(".path-cell .hint").first());
  expect(name.y + name.height).toBeLessThanOrEqual(path.y + path.height + 1);
});
