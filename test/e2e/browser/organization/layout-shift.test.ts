/** Content that appears later does not move what the user reads, or is about to click. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startApi } from "../../../harness/server/api.ts";
import {
  createFullOrganization,
  type FullOrganization,
} from "../../../harness/browser/full-organization.ts";
import { NARROW } from "../../../harness/browser/page-checks.ts";
import { SHELL_PATHS, usePages, waitForContent } from "../../../harness/browser/pages.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

const pages = usePages(() => startApi());

/** The sum of the scores of all shifts of a page. Search engines call 0.1 good. */
const SHIFT_MAX = 0.02;
const WIDE = { width: 1280, height: 800 };

let organization: FullOrganization;
beforeAll(async () => {
  organization = await createFullOrganization(pages.api);
});
afterAll(() => organization?.[Symbol.asyncDispose]());

/**
 * Runs before the page's own script. Each response of the API arrives in a frame of its own, as over a slow network, so that
 * what it moves is counted.
 */
const WATCH_SHIFTS = `
  const shifts = [];
  new PerformanceObserver((list) => shifts.push(...list.getEntries()))
    .observe({ type: "layout-shift", buffered: true });
  const { fetch, Date: { now } } = window;
  const nextFrame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  let turn = Promise.resolve();
  let sent = 0;
  let answered = 0;
  let laterMs = 0;
  window.fetch = async (...request) => {
    // A long poll waits for the next delivery of a webhook.
    if (/[?&]wait=[1-9]/.test(request[0])) return fetch(...request);
    sent += 1;
    try {
      const response = await fetch(...request);
      turn = turn.then(nextFrame).then(nextFrame);
      await turn;
      return response;
    } finally {
      answered += 1;
    }
  };
  Date.now = () => now() + laterMs;
  const describe = ({ node, previousRect: from, currentRect: to }) =>
    (node?.className ?? node?.nodeName) + " from " + from.y + " to " + to.y;
  window.layout = {
    isQuiet: async () => {
      const before = answered;
      await nextFrame().then(nextFrame);
      return before === sent;
    },
    takeShifts: () => shifts.splice(0).filter((each) => !each.hadRecentInput)
      .map(({ value, sources }) => ({ value, sources: sources.map(describe) })),
    /** As when the user returns to the tab after a while: the page loads its data again. */
    returnToTab: async () => {
      const before = sent;
      laterMs += 60_000;
      document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
      await nextFrame();
      return sent - before;
    },
  };
`;

interface Shift {
  value: number;
  /** The elements that moved. */
  sources: string[];
}

async function takeShifts(page: Page): Promise<Shift[]> {
  await expect.poll(() => page.evaluate("layout.isQuiet()"), WAIT_OPTIONS).toBe(true);
  await waitForContent(page);
  return page.evaluate<Shift[]>("layout.takeShifts()");
}

test.each([
  [WIDE.width, WIDE],
  [NARROW.width, NARROW],
])(
  "on a screen of %d pixels, no page moves its content while it loads, and while new data arrives",
  async (_width, size) => {
    const page = await pages.openAs(organization.owner.email);
    await page.setViewportSize(size);
    await page.addInitScript(WATCH_SHIFTS);
    const problems: unknown[] = [];
    for (const path of SHELL_PATHS) {
      const note = (when: string, shifts: Shift[]) => {
        const sum = shifts.reduce((total, { value }) => total + value, 0);
        if (sum >= SHIFT_MAX) problems.push({ path, when, sum, shifts });
      };
      await page.goto(pages.origin + organization.getPath(path));
      note("loading", await takeShifts(page));
      await organization.addTraffic();
      expect(await page.evaluate<number>("layout.returnToTab()")).toBeGreaterThan(0);
      note("new data", await takeShifts(page));
    }
    expect(problems).toEqual([]);
  },
);
