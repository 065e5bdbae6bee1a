import { describe, expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../../protocol/limits.ts";
import {
  Traffic,
  type StoredBucket,
  type TrafficBucket,
} from "../../../../durable-objects/tunnel/metrics/traffic.ts";

const NOON = Date.UTC(2026, 10, 21, 12);

class Counting {
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

const short = ({ grain, startsAtMs, requests, bytesOut }: TrafficBucket) =>
  `${grain} ${new Date(startsAtMs).toISOString().slice(8, 16)} ${requests} ${bytesOut}`;
const shorts = (buckets: TrafficBucket[]) => buckets.map(short).sort();

describe("traffic", () => {
  test("is in the minute and the hour in which it is counted, to the millisecond", () => {
    const counting = new Counting();
    counting.count(NOON);
    counting.count(NOON + MINUTE_MS - 1, 2, 5);
    counting.count(NOON + MINUTE_MS, 3, 7);
    counting.count(NOON + HOUR_MS - 1);
    counting.count(NOON + HOUR_MS);
    expect(shorts(counting.traffic.getUnreported(NOON + HOUR_MS))).toEqual([
      "hour 21T12:00 7 32",
      "hour 21T13:00 1 10",
      "minute 21T12:00 3 15",
      "minute 21T12:01 3 7",
      "minute 21T12:59 1 10",
      "minute 21T13:00 1 10",
    ]);
  });

  test("is told in totals, again when it grew, and forgotten once it is over and told", () => {
    const counting = new Counting();
    counting.count(NOON);
    counting.traffic.markReported(counting.traffic.getUnreported(NOON));
    expect(counting.traffic.getUnreported(NOON + 1)).toEqual([]);
    counting.count(NOON + 2);
    expect(shorts(counting.traffic.getUnreported(NOON + 3))).toEqual([
      "hour 21T12:00 2 20",
      "minute 21T12:00 2 20",
    ]);
    counting.traffic.markReported(counting.traffic.getUnreported(NOON + 3));
    expect(counting.traffic.getUnreported(NOON + MINUTE_MS)).toEqual([]);
    expect(shorts(counting.traffic.stored)).toEqual(["hour 21T12:00 2 20"]);
  });

  test("that grew while it was told is told again", () => {
    const counting = new Counting();
    counting.count(NOON);
    const sent = counting.traffic.getUnreported(NOON);
    counting.count(NOON + 1);
    counting.traffic.getUnreported(NOON + 1);
    counting.traffic.markReported(sent);
    expect(shorts(counting.traffic.getUnreported(NOON + 1))).toContain("minute 21T12:00 2 20");
  });

  test("goes on after a restart where it was saved, and counts nothing twice", () => {
    const before = new Counting();
    before.count(NOON);
    before.traffic.markReported(before.traffic.getUnreported(NOON));
    const saved = before.traffic.stored;
    const after = new Counting(structuredClone(saved), NOON + 30_000);
    after.count(NOON + 30_000);
    expect(shorts(after.traffic.getUnreported(NOON + 30_000))).toEqual([
      "hour 21T12:00 2 20",
      "minute 21T12:00 2 20",
    ]);
  });

  test("is in no minute before the newest one, however far the clock is set back", () => {
    const counting = new Counting();
    counting.count(NOON + 5 * MINUTE_MS);
    counting.count(NOON);
    expect(shorts(counting.traffic.getUnreported(NOON))).toEqual([
      "hour 21T12:00 2 20",
      "minute 21T12:05 2 20",
    ]);
    const restarted = new Counting(counting.traffic.stored, NOON - DAY_MS);
    restarted.count(NOON - DAY_MS);
    expect(shorts(restarted.traffic.getUnreported(NOON))).toContain("minute 21T12:05 3 30");
  });

  test("that nobody takes is kept for as long as its rows would be, and no longer", () => {
    const counting = new Counting();
    for (let day = 0; day <= 40; day += 1) counting.count(NOON + day * DAY_MS);
    const untold = counting.traffic.getUnreported(NOON + 40 * DAY_MS);
    expect(untold.filter(({ grain }) => grain === "minute")).toHaveLength(3);
    expect(untold.filter(({ grain }) => grain === "hour")).toHaveLength(36);
  });
});
