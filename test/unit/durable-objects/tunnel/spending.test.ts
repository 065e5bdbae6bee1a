import { describe, expect, test } from "vitest";
import { Spending } from "../../../../durable-objects/tunnel/metrics/spending.ts";

const NOVEMBER = Date.UTC(2026, 10, 30, 23, 59);
const DECEMBER = Date.UTC(2026, 11, 1, 0, 1);
const JANUARY = Date.UTC(2027, 0, 1);

function createSpending() {
  const totals = { bytesIn: 0, bytesOut: 0, requests: 0 };
  const spending = new Spending(new Map(), totals, "ab");
  /** @returns the totals that are reported. */
  const report = (nowMs: number) => {
    const unreported = spending.getUnreported(nowMs);
    spending.markReported(unreported);
    return unreported.map(({ month, bytes, requests }) => [month, bytes, requests]);
  };
  const visit = (bytes: number) => {
    totals.bytesOut += bytes;
    totals.requests += 1;
  };
  return { spending, report, visit };
}

// The database keeps the highest total that it has received: a count that began again would add nothing to it.
describe("the total of a month that has ended", () => {
  test("continues when another object of the tunnel reports traffic of that month late", () => {
    const { spending, report, visit } = createSpending();
    visit(100);
    expect(report(NOVEMBER)).toEqual([["2026-11", 100, 1]]);
    expect(report(DECEMBER)).toEqual([]);
    spending.add({ tokenNonce: "ab", month: "2026-11", bytes: 7, requests: 1 });
    expect(report(DECEMBER)).toEqual([["2026-11", 107, 2]]);
  });

  test("continues when the clock is set back into it", () => {
    const { report, visit } = createSpending();
    visit(100);
    report(NOVEMBER);
    report(DECEMBER);
    visit(1);
    expect(report(NOVEMBER)).toEqual([["2026-11", 101, 2]]);
  });

  test("is forgotten when the month after it has ended too", () => {
    const { spending, report, visit } = createSpending();
    visit(100);
    report(NOVEMBER);
    report(DECEMBER);
    expect(spending.stored.size).toBe(1);
    report(JANUARY);
    expect(spending.stored.size).toBe(0);
  });
});
