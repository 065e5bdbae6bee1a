/** The live inspector with requests that no visitor sent: more than it keeps, and hostile ones. */
import type { Locator, Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { CaptureIdGenerator } from "../../../../protocol/captures/id.ts";
import {
  WATCH_PING,
  WATCH_PONG,
  type WatchMessage,
} from "../../../../protocol/captures/watch-protocol.ts";
import type { CaptureSummary } from "../../../../protocol/schemas/inspector/captures.ts";
import { HOSTILE_HTML } from "../../../harness/browser/captured-requests.ts";
import { startInspectedSite, type InspectedSite } from "../../../harness/browser/inspected-site.ts";
import { findAccessibilityProblems } from "../../../harness/browser/page-checks.ts";
import { clickButton, usePages } from "../../../harness/browser/pages.ts";
import { buildCapture } from "../../../harness/tunnel/capture.ts";

/** As many as the list keeps. */
const KEPT = 10_000;
const BATCH = 500;
/** A screen of rows, and some around it. */
const DOM_ROWS_MAX = 60;
const MEBIBYTE = 1024 * 1024;

let site: InspectedSite;
let ids: CaptureIdGenerator;
const pages = usePages(async () => {
  site = await startInspectedSite("inspected-synthetic");
  ids = new CaptureIdGenerator(site.tunnel.id, 0);
  return site.api;
});
afterAll(() => site.close());

const getRows = (page: Page) => page.getByRole("grid", { name: "Requests" }).locator("[data-id]");
const getFilter = (page: Page) => page.getByLabel("Filter", { exact: true });

interface LivePage {
  page: Page;
  send: (captures: readonly CaptureSummary[]) => void;
}

/** The list is the server's, and new requests are those of the test. */
async function openLivePage(): Promise<LivePage> {
  const page = await pages.openAs(site.email, "/members");
  const sockets: ((message: WatchMessage) => void)[] = [];
  await page.routeWebSocket(/\/inspector\/ws/, (socket) => {
    socket.onMessage((message) => message === WATCH_PING && socket.send(WATCH_PONG));
    sockets.push((message) => socket.send(JSON.stringify(message)));
  });
  await page.goto(`${pages.origin}/requests`);
  await page.getByText(/^Live/).waitFor();
  const send = (requests: readonly CaptureSummary[]) => {
    for (const each of sockets) each({ type: "requests", requests: [...requests] });
  };
  return { page, send };
}

function build(event: Partial<CaptureSummary>): CaptureSummary {
  const now = Date.now();
  const timestamp = new Date(now).toISOString();
  return buildCapture({ tunnel_id: site.tunnel.id, timestamp, ...event, id: ids.next(now) });
}

/** Every fifth request fails. */
function buildNumbered(from: number, count: number): CaptureSummary[] {
  return Array.from({ length: count }, (_, index) => {
    const number = from + index;
    return build({ path: `/numbered/${number}`, status: number % 5 === 0 ? 500 : 200 });
  });
}

test("of more than 10,000 requests the oldest are dropped, and the page has as many rows and as much memory as before", async () => {
  await site.visit("/stored/first");
  const { page, send } = await openLivePage();
  await getRows(page).filter({ hasText: "/stored/first" }).waitFor();
  const sendNumbered = async (from: number) => {
    for (let at = from; at < from + KEPT; at += BATCH) send(buildNumbered(at, BATCH));
    const newest = `/numbered/${from + KEPT - 1}`;
    await getRows(page).filter({ hasText: newest }).waitFor();
  };
  await sendNumbered(0);
  await page.getByText("Live · newest 10,000 requests").waitFor();
  expect(await getRows(page).count()).toBeLessThan(DOM_ROWS_MAX);
  const heapBefore = await measureHeap(page);
  await sendNumbered(KEPT);
  await page.getByText("Live · newest 10,000 requests").waitFor();
  expect(await getRows(page).count()).toBeLessThan(DOM_ROWS_MAX);
  expect((await measureHeap(page)) - heapBefore).toBeLessThan(2 * MEBIBYTE);

  await getFilter(page).fill("status:500 path:/numbered");
  await page.getByText("Live · 2,000 of the newest 10,000").waitFor();
  await page.keyboard.press("Escape");
  await getRows(page).filter({ hasText: "/numbered/19995" }).waitFor();
  await getFilter(page).fill("path:/stored/first");
  await page.getByText("Live · 0 of the newest 10,000").waitFor();
  expect(await findAccessibilityProblems(page)).toEqual([]);
  await clickButton(page, "None of the newest 10,000 matches. Search older ones");
  await getRows(page).filter({ hasText: "/stored/first" }).waitFor();
});

test("while requests arrive, a row stays under the pointer that presses it, and stays in view while its details are read", async () => {
  const { page, send } = await openLivePage();
  send(buildNumbered(0, BATCH));
  const row = getRows(page).filter({ hasText: `/numbered/${BATCH - 3}` });
  await row.waitFor();
  const before = (await row.boundingBox())!;
  await page.mouse.move(before.x + before.width / 4, before.y + before.height / 2);
  await page.mouse.down();
  send(buildNumbered(BATCH, BATCH));
  await page.getByRole("button", { name: "500 new" }).waitFor();
  await page.mouse.up();
  await page.getByRole("heading", { name: "This request is not stored" }).waitFor();
  send(buildNumbered(2 * BATCH, BATCH));
  await page.getByText("Not following · 1,000 new").waitFor();
  expect((await row.boundingBox())?.y).toBe(before.y);
  expect(await row.getAttribute("aria-selected")).toBe("true");
  await clickButton(page, "1,000 new");
  await getRows(page)
    .filter({ hasText: `/numbered/${3 * BATCH - 1}` })
    .waitFor();
});

test("an open stream shows how much it has transferred at least, until it ends", async () => {
  const { page, send } = await openLivePage();
  const open = build({ path: "/open", kind: "sse", state: "open", duration_ms: null });
  const stream = { ...open, request_size: 300, response_size: 1_200 };
  send([stream]);
  const row = getRows(page).filter({ hasText: "/open" });
  await row.getByTitle("Still open").getByText("≥ 1.5 kB").waitFor();
  send([{ ...stream, state: "complete", duration_ms: 60_000, response_size: 2_700 }]);
  await row.getByText("3 kB", { exact: true }).waitFor();
  expect(await row.getByTitle("Still open").count()).toBe(0);
});

test("the keys `r`, `e` and `c` call nothing for a request whose headers were not stored, and say why", async () => {
  const { page, send } = await openLivePage();
  send([build({ path: "/large-head", request_head_missing: true })]);
  await getRows(page).filter({ hasText: "/large-head" }).waitFor();
  await page.keyboard.press("Home");
  const calls: string[] = [];
  page.on("request", (request) => calls.push(`${request.method()} ${request.url()}`));
  const notice = "The headers of this request were not stored: it can't be";
  await page.keyboard.press("c");
  await page.getByText(`${notice} copied as curl.`).waitFor();
  await page.keyboard.press("e");
  await page.keyboard.press("r");
  await page.getByText(`${notice} replayed.`).nth(1).waitFor();
  expect(calls.filter((call) => call.includes("/inspector/"))).toEqual([]);
});

async function measureHeap(page: Page): Promise<number> {
  const devTools = await page.context().newCDPSession(page);
  await devTools.send("HeapProfiler.collectGarbage");
  const { usedSize } = await devTools.send("Runtime.getHeapUsage");
  await devTools.detach();
  return usedSize;
}

/** Overrides the direction of what follows, and is never ended. */
const OVERRIDE = "\u202e";
const HOSTILE_PATHS = [
  `/invoice-${OVERRIDE}gpj.exe`,
  `/${"\u2067\u202b".repeat(50)}right`,
  `/${HOSTILE_HTML}`,
  `/${"x".repeat(5_000)}`,
  "/\u0000\u0007\u001b[31mred",
  "/\ud800lone",
];

test("whatever a path contains, it stays in its cell of the list, and in its line of the palette", async () => {
  await site.owned.owner.post("/tunnels", { localPort: 1, name: `${OVERRIDE}eman` });
  const { page, send } = await openLivePage();
  const dialogs: string[] = [];
  page.on("dialog", (dialog) => dialogs.push(dialog.message()));
  const captures = [
    ...HOSTILE_PATHS.map((path) => build({ path, state: "failed", error: "agent_offline" })),
    build({ path: "/ordinary", state: "failed", error: "agent_offline" }),
  ];
  send(captures);
  await getRows(page).filter({ hasText: "/ordinary" }).waitFor();
  await expectSameCells(getRows(page), captures.length);
  await getRows(page).filter({ hasText: "onerror" }).waitFor();
  await getRows(page).filter({ hasText: "/invoice-U+202Egpj.exe" }).waitFor();

  await page.route(/\/inspector\?limit=200$/, (route) => route.fulfill({ json: captures }));
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Find anything" }).fill("GET /");
  // Its first entries, in the order of the list.
  const options = page.getByRole("option").filter({ hasText: "GET /" });
  await options.nth(HOSTILE_PATHS.length - 1).waitFor();
  await options.filter({ hasText: "onerror" }).waitFor();
  await options.filter({ hasText: "/invoice-U+202Egpj.exe" }).waitFor();
  for (const option of await options.all()) {
    const [icon, title, detail] = await findLeftEdges(option.locator(":scope > *"));
    expect([icon! < title!, title! < detail!]).toEqual([true, true]);
  }
  expect(dialogs).toEqual([]);
  expect(await page.evaluate("window.hacked")).toBeUndefined();
});

test("on a narrow screen the state of a request is not cut in the list, nor a name in its summary", async () => {
  await site.visit("/summary");
  const { page, send } = await openLivePage();
  await page.setViewportSize({ width: 460, height: 740 });
  const isCut = (element: { scrollWidth: number; clientWidth: number }) =>
    element.scrollWidth > element.clientWidth;
  send([build({ path: "/events", kind: "sse", state: "open", duration_ms: null })]);
  const open = getRows(page).filter({ hasText: "/events" }).getByText("open", { exact: true });
  expect(await open.evaluate(isCut)).toBe(false);
  const refusal = { state: "refused", error: "maintenance", status: 503 } as const;
  for (const path of ["/short", `/${"long/".repeat(40)}`]) {
    send([build({ path, ...refusal })]);
    const row = getRows(page).filter({ hasText: path });
    expect([path, await row.getByText("maintenance").evaluate(isCut)]).toEqual([path, false]);
    const target = await row.locator(".target").boundingBox();
    expect(target!.width).toBeGreaterThan(24);
  }

  await page.setViewportSize({ width: 360, height: 740 });
  await getRows(page).filter({ hasText: "/summary" }).click();
  const names = page.locator(".request-summary dt");
  await names.filter({ hasText: "Received" }).waitFor();
  const boxes = await Promise.all((await names.all()).map((each) => each.boundingBox()));
  expect(new Set(boxes.map((box) => box?.height)).size).toBe(1);
});

test("the button that closes the details is in their first card, beside the button that copies the URL", async () => {
  await site.visit("/closed");
  const { page } = await openLivePage();
  await getRows(page).filter({ hasText: "/closed" }).click();
  const details = page.getByRole("region", { name: "Details of the request" });
  const getBox = async (element: Locator) => (await element.boundingBox())!;
  const card = await getBox(details.getByRole("region", { name: "Summary" }));
  const copy = await getBox(details.getByRole("button", { name: "Copy the URL" }));
  const close = await getBox(details.getByRole("button", { name: "Close", exact: true }));
  expect(close.x).toBeGreaterThanOrEqual(copy.x + copy.width);
  expect(close.y).toBeGreaterThan(card.y);
  expect(close.x + close.width).toBeLessThan(card.x + card.width);
});

/** The cells of all rows are in the same places, and read from left to right. */
async function expectSameCells(rows: Locator, count: number): Promise<void> {
  const edges: number[][] = [];
  for (let index = 0; index < count; index += 1) {
    const row = rows.nth(index);
    edges.push(await findLeftEdges(row.getByRole("gridcell")));
    const [path, badge] = await findLeftEdges(row.locator(".path > *"));
    expect(path).toBeLessThan(badge!);
  }
  expect(edges).toEqual(edges.map(() => edges[0]));
}

async function findLeftEdges(elements: Locator): Promise<number[]> {
  const boxes = await Promise.all((await elements.all()).map((each) => each.boundingBox()));
  return boxes.map((box) => box?.x ?? NaN);
}
