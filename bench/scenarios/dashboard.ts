/**
 * The live inspector of the dashboard in Chromium, with hundreds of requests a second: how smoothly the page runs, how late rows appear,
 * how much memory it gains, how long a filter of 10,000 requests takes, and how long a large body takes to open. Each figure has
 * its limit beside it.
 */
import { request as httpRequest } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { CDPSession, Page } from "playwright-core";
import { openBrowser } from "../../test/harness/browser/browser.ts";
import { PACED_REQUESTS_PER_SECOND, visitPaced } from "../paced-visits.ts";
import type { Row } from "../report.ts";
import type { BenchOptions } from "../settings.ts";
import type { BenchStack } from "../stack.ts";
import { percentile } from "../statistics.ts";

/** Requests that are loaded before the filter is measured. */
const LISTED_ROWS = 10_000;
const MEBIBYTE = 1024 * 1024;
/** The longest body that is captured. */
const LARGE_BODY_BYTES = 512 * 1024;
const READY_MAX_MS = 60_000;

const LIMITS = {
  "first row ms": "<= 500",
  "frames/s": ">= 55",
  "longest frame ms": "<= 100",
  "heap growth MiB": "<= 10",
  "row p99 ms": "<= 300",
  "filter ms": "<= 50",
  "512 KiB body ms": "<= 100",
} as const;

export async function benchDashboard(stack: BenchStack, { seconds }: BenchOptions): Promise<Row[]> {
  const browser = await openBrowser();
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(READY_MAX_MS);
    const cdp = await page.context().newCDPSession(page);
    await signIn(page, stack);
    const firstRowMs = await measureFirstRow(stack, page);
    // The list is full from here on, so that the heap has no reason to grow.
    await visitPaced(stack, Math.ceil(LISTED_ROWS / PACED_REQUESTS_PER_SECOND) + 1);
    await waitForNumber(page, COUNT_ROWS, LISTED_ROWS);
    const heapBefore = await measureHeap(cdp);
    await startRecording(page);
    const answeredAtMs = await visitPaced(stack, seconds);
    await sleep(1_000);
    const recorded = await readRecording(page);
    const heapAfter = await measureHeap(cdp);
    const late = [...answeredAtMs].flatMap(([path, atMs]) => {
      const shownAtMs = recorded.shownAtMs[path];
      return shownAtMs === undefined ? [] : [Math.max(0, shownAtMs - atMs)];
    });
    const figures: Record<keyof typeof LIMITS, number> = {
      "first row ms": firstRowMs,
      "frames/s": recorded.framesPerSecond,
      "longest frame ms": recorded.longestFrameMs,
      "heap growth MiB": (heapAfter - heapBefore) / MEBIBYTE,
      "row p99 ms": percentile(late, 0.99),
      "filter ms": await measureFilter(page),
      "512 KiB body ms": await measureLargeBody(stack, page),
    };
    return Object.entries(figures).map(([name, value]) => ({
      group: `dashboard, ${seconds} s with ${PACED_REQUESTS_PER_SECOND} requests a second (${late.length} rows seen)`,
      figure: name,
      value: Math.round(value * 10) / 10,
      limit: LIMITS[name as keyof typeof LIMITS],
    }));
  } finally {
    await browser.close();
  }
}

async function signIn(page: Page, { server, email, password }: BenchStack): Promise<void> {
  await page.goto(`http://localhost:${server.port}/members`);
  await page.getByLabel("Email address").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

/** From the start of a complete load of the page, with some stored requests. */
async function measureFirstRow(stack: BenchStack, page: Page): Promise<number> {
  await visitPaced(stack, 1);
  await page.goto(`http://localhost:${stack.server.port}/requests`);
  await page.locator("[data-id]").first().waitFor();
  await page.addInitScript(NOTE_FIRST_ROW);
  await page.reload();
  return waitForNumber(page, "window.firstRowAtMs ?? 0", 1);
}

/** Runs in the page before its own script. */
const NOTE_FIRST_ROW = `
  const check = () => {
    if (document.querySelector("[data-id]") === null) requestAnimationFrame(check);
    else window.firstRowAtMs = performance.now();
  };
  requestAnimationFrame(check);
`;

/** The page's policy forbids to evaluate a string, which Playwright's own waiting does. */
async function waitForNumber(page: Page, expression: string, lowest: number): Promise<number> {
  const deadlineMs = Date.now() + READY_MAX_MS;
  for (;;) {
    const value = await page.evaluate<number>(expression);
    if (value >= lowest) return value;
    if (Date.now() > deadlineMs) throw new Error(`${expression} is ${value}, not ${lowest}`);
    await sleep(100);
  }
}

const COUNT_ROWS = `Number(document.querySelector("[role=grid]").getAttribute("aria-rowcount"))`;

async function measureHeap(cdp: CDPSession): Promise<number> {
  await cdp.send("HeapProfiler.collectGarbage");
  const { usedSize } = await cdp.send("Runtime.getHeapUsage");
  return usedSize;
}

/** Notes the time of each frame, and when each path was first shown. */
async function startRecording(page: Page): Promise<void> {
  await page.evaluate(`
    const recording = { frames: [], shownAtMs: {}, isRunning: true };
    window.recording = recording;
    const note = (now) => {
      recording.frames.push(now);
      for (const cell of document.querySelectorAll("[data-id] .target")) {
        recording.shownAtMs[cell.title] ??= performance.timeOrigin + now;
      }
      if (recording.isRunning) requestAnimationFrame(note);
    };
    requestAnimationFrame(note);
  `);
}

interface Recording {
  framesPerSecond: number;
  longestFrameMs: number;
  /** By path: when its row was first visible, in ms since the epoch. */
  shownAtMs: Record<string, number>;
}

async function readRecording(page: Page): Promise<Recording> {
  return page.evaluate<Recording>(`
    (() => {
      const { frames, shownAtMs } = window.recording;
      window.recording.isRunning = false;
      const lengths = frames.slice(1).map((at, index) => at - frames[index]);
      window.recording = undefined;
      return {
        framesPerSecond: (lengths.length * 1000) / (frames.at(-1) - frames[0]),
        longestFrameMs: lengths.reduce((longest, length) => Math.max(longest, length), 0),
        shownAtMs,
      };
    })()
  `);
}

/** The page itself measures from the change of the filter until its rows are known. */
async function measureFilter(page: Page): Promise<number> {
  await page.evaluate("performance.clearMeasures()");
  await page.getByLabel("Filter", { exact: true }).fill("status:200 -path:/health method:GET a7");
  const measures = 'performance.getEntriesByName("filter requests")';
  await waitForNumber(page, `${measures}.length`, 1);
  return page.evaluate<number>(`${measures}.at(-1).duration`);
}

/** From the click on a request until the tree of its JSON body is in the page. The request is loaded meanwhile. */
async function measureLargeBody({ server, host }: BenchStack, page: Page): Promise<number> {
  const items = Array.from({ length: 10_000 }, (_, id) => ({
    id,
    name: `item ${id}`,
    tags: ["a", "b"],
  }));
  const text = JSON.stringify({ items });
  const body = text + " ".repeat(LARGE_BODY_BYTES - text.length);
  await send(server.port, { host, "content-type": "application/json" }, body);
  await page.goto(`http://localhost:${server.port}/requests`);
  const row = page.locator("[data-id]").filter({ hasText: "/large-body" }).first();
  await row.waitFor();
  // The page loads the code of the details as soon as it is idle.
  await sleep(2_000);
  await page.evaluate(`
    document.addEventListener("pointerdown", () => {
      const pressedAt = performance.now();
      const check = () => {
        if (document.querySelector("[role=treeitem]") === null) requestAnimationFrame(check);
        else window.bodyMs = performance.now() - pressedAt;
      };
      check();
    }, { capture: true, once: true });
  `);
  await row.click();
  return waitForNumber(page, "window.bodyMs ?? 0", 1);
}

function send(port: number, headers: Record<string, string>, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, method: "POST", path: "/large-body", headers };
    const request = httpRequest(options, (answer) => {
      answer.resume();
      answer.on("end", resolve);
    });
    request.on("error", reject);
    request.end(body);
  });
}
