import fc from "fast-check";
import { expect, test } from "vitest";
import {
  REPORT_BURST,
  REPORT_INTERVAL_MS,
  REPORT_PROMPT_MS,
  ReportPace,
} from "../../../../durable-objects/tunnel/metrics/report-pace.ts";

const NOON = Date.UTC(2026, 10, 21, 12);

test("a tunnel's reports are prompt after a pause, and then one a minute, whenever requests arrive", () => {
  const gaps = fc.array(fc.nat(3 * REPORT_INTERVAL_MS), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(gaps, (gapsMs) => {
      let nowMs = NOON;
      let pace = new ReportPace();
      let reports = 0;
      for (const gapMs of gapsMs) {
        nowMs += gapMs;
        const dueAtMs = pace.nextAtMs(nowMs);
        expect(dueAtMs - nowMs).toBeGreaterThanOrEqual(REPORT_PROMPT_MS);
        expect(dueAtMs - nowMs).toBeLessThanOrEqual(REPORT_INTERVAL_MS);
        if (reports < REPORT_BURST) expect(dueAtMs - nowMs).toBe(REPORT_PROMPT_MS);
        nowMs = dueAtMs;
        pace.recordReport(nowMs);
        reports += 1;
        pace = new ReportPace(pace.saved);
        expect(reports).toBeLessThanOrEqual(REPORT_BURST + (nowMs - NOON) / REPORT_INTERVAL_MS);
      }
    }),
  );
});

test("a clock that was set back delays a report by one interval at most", () => {
  const pace = new ReportPace();
  for (let n = 0; n < 2 * REPORT_BURST; n++) pace.recordReport(NOON);
  const earlierMs = NOON - 60 * REPORT_INTERVAL_MS;
  expect(pace.nextAtMs(earlierMs)).toBe(earlierMs + REPORT_INTERVAL_MS);
});
