import { describe, expect, test } from "vitest";
import {
  Traffic,
  type StoredBucket,
  type TrafficBucket,
} from "../../../../durable-objects/tunnel/metrics/traffic.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../../shared/time.ts";

const NOON = Date.UTC(2026, 10, 21, 12);

class Counter {
  totals = { requests: 0, bytesIn: 0, bytesOut: 0 };
  traffic: Traffic;

  constructor(saved?: StoredBucket[], nowMs = NOON) {
    this.traffic = new Traffic(() => ({ ...this.totals }), saved, nowMs);
  }

  count(nowMs: number, requests = 1, bytes = 10): void {
    this.traffic.advanceTo(nowMs);
    this.totals.requests += requests;
    this.totals.bytesOut += bytes;
  }
}

const format = ({ grain, startsAtMs, requests, bytesOut }: TrafficBucket) =>
  `${grain} ${new Date(startsAtMs).toISOString().slice(8, 16)} ${requests} ${bytesOut}`;
const formatAll = (buckets: TrafficBucket[]) => buckets.map(format).sort();

describe("traffic", () => {
  test("is counted in its minute and hour, to the millisecond", () => {
    const counter = new Counter();
    counter.count(NOON);
    counter.count(NOON + MINUTE_MS - 1, 2, 5);
    counter.count(NOON + MINUTE_MS, 3, 7);
    counter.count(NOON + HOUR_MS - 1);
    counter.count(NOON + HOUR_MS);
    expect(formatAll(counter.traffic.getUnreported(NOON + HOUR_MS))).toEqual([
      "hour 21T12:00 7 32",
      "hour 21T13:00 1 10",
      "minute 21T12:00 3 15",
      "minute 21T12:01 3 7",
      "minute 21T12:59 1 10",
      "minute 21T13:00 1 10",
    ]);
  });

  test("is reported in totals, again after it grew, and dropped once it is complete and reported", () => {
    const counter = new Counter();
    counter.count(NOON);
    counter.traffic.markReported(counter.traffic.getUnreported(NOON));
    expect(counter.traffic.getUnreported(NOON + 1)).toEqual([]);
    counter.count(NOON + 2);
    expect(formatAll(counter.traffic.getUnreported(NOON + 3))).toEqual([
      "hour 21T12:00 2 20",
      "minute 21T12:00 2 20",
    ]);
    counter.traffic.markReported(counter.traffic.getUnreported(NOON + 3));
    expect(counter.traffic.getUnreported(NOON + MINUTE_MS)).toEqual([]);
    expect(formatAll(counter.traffic.stored)).toEqual(["hour 21T12:00 2 20"]);
  });

  test("that grows during a report is reported again", () => {
    const counter = new Counter();
    counter.count(NOON);
    const sent = counter.traffic.getUnreported(NOON);
    counter.count(NOON + 1);
    counter.traffic.getUnreported(NOON + 1);
    counter.traffic.markReported(sent);
    expect(formatAll(counter.traffic.getUnreported(NOON + 1))).toContain("minute 21T12:00 2 20");
  });

  test("continues after a restart from what was saved, and counts nothing twice", () => {
    const before = new Counter();
    before.count(NOON);
    before.traffic.markReported(before.traffic.getUnreported(NOON));
    const saved = before.traffic.stored;
    const after = new Counter(structuredClone(saved), NOON + 30_000);
    after.count(NOON + 30_000);
    expect(formatAll(after.traffic.getUnreported(NOON + 30_000))).toEqual([
      "hour 21T12:00 2 20",
      "minute 21T12:00 2 20",
    ]);
  });

  test("is never counted in a minute before the newest one, however far the clock is set back", () => {
    const counter = new Counter();
    counter.count(NOON + 5 * MINUTE_MS);
    counter.count(NOON);
    expect(formatAll(counter.traffic.getUnreported(NOON))).toEqual([
      "hour 21T12:00 2 20",
      "minute 21T12:05 2 20",
    ]);
    const restarted = new Counter(counter.traffic.stored, NOON - DAY_MS);
    restarted.count(NOON - DAY_MS);
    expect(formatAll(restarted.traffic.getUnreported(NOON))).toContain("minute 21T12:05 3 30");
  });

  test("that can't be reported is stored as long as its rows would be", () => {
    const counter = new Counter();
    for (let day = 0; day <= 40; day += 1) counter.count(NOON + day * DAY_MS);
    const unreported = counter.traffic.getUnreported(NOON + 40 * DAY_MS);
    expect(unreported.filter(({ grain }) => grain === "minute")).toHaveLength(3);
    expect(unreported.filter(({ grain }) => grain === "hour")).toHaveLength(36);
  });
});
