/** For any behavior of a watcher, each request is sent or counted as missed, and the bytes in flight are bounded. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  acknowledge,
  takeDueSync,
  takeMissedCount,
  isStuck,
  createFlowState,
  admitMessages,
  addMissed,
  getWindowBytes,
  type FlowLimits,
  type WatcherFlowState,
  WATCH_BEHIND_MAX_MS,
  WATCH_UNACKNOWLEDGED_BURST_BYTES,
  WATCH_UNACKNOWLEDGED_BYTES_PER_SECOND,
  WATCH_UNACKNOWLEDGED_MAX_BYTES,
  WATCH_WINDOW_MAX_BYTES,
  WATCH_WINDOWS_BYTES,
} from "../../../../durable-objects/organization/watcher-flow-control.ts";

/** A watcher that reads when the test calls it. */
class Reader {
  readonly state: WatcherFlowState;
  readonly #windowBytes: number;
  nowMs = 0;
  sent = 0;
  missed = 0;
  /** Syncs that it has not answered yet. */
  syncs: number[] = [];
  maxInFlightBytes = 0;

  constructor(windowBytes = WATCH_WINDOW_MAX_BYTES) {
    this.#windowBytes = windowBytes;
    this.state = createFlowState(0);
  }

  limits(queuedBytes?: number): FlowLimits {
    return { nowMs: this.nowMs, windowBytes: this.#windowBytes, queuedBytes };
  }

  offer(sizes: number[], lost = 0): void {
    const limits = this.limits();
    this.missed += takeMissedCount(this.state, limits);
    this.sent += admitMessages(this.state, sizes, limits);
    addMissed(this.state, lost, this.nowMs);
    this.missed += takeMissedCount(this.state, limits);
    this.#readSync();
    const inFlightBytes = this.state.sentBytes - this.state.acknowledgedBytes;
    if (this.state.hasAcknowledged)
      this.maxInFlightBytes = Math.max(this.maxInFlightBytes, inFlightBytes);
  }

  answer(): void {
    const n = this.syncs.shift();
    if (n === undefined) return;
    acknowledge(this.state, n);
    this.missed += takeMissedCount(this.state, this.limits());
    this.#readSync();
  }

  #readSync(): void {
    const n = takeDueSync(this.state, this.limits());
    if (n !== null) this.syncs.push(n);
  }

  check(): void {
    this.missed += takeMissedCount(this.state, this.limits());
  }

  get accounted(): number {
    return this.sent + this.missed + this.state.missed;
  }
}

const messages = (count: number, size = 300) => Array<number>(count).fill(size);

/** A watcher and the requests that it is offered. */
const schedule = fc.record({
  windowBytes: fc.integer({ min: 1, max: 8 }).map((n) => n * 32_768),
  answersInTen: fc.nat(9),
  steps: fc.array(
    fc.record({
      ms: fc.nat(59),
      sizes: fc.array(fc.integer({ min: 100, max: 2_099 }), { maxLength: 39, size: "max" }),
      lost: fc.oneof(
        { weight: 19, arbitrary: fc.constant(0) },
        { weight: 1, arbitrary: fc.nat(9) },
      ),
      /** The watcher answers as many syncs as there are numbers below `answersInTen`, up to the first other one. */
      answers: fc.array(fc.nat(9), { maxLength: 5, size: "max" }),
      isChecked: fc.nat(9).map((n) => n === 0),
    }),
    { maxLength: 3_000, size: "max" },
  ),
});

test("every message is sent or missed, and the bytes in flight are bounded", () => {
  fc.assert(
    fc.property(schedule, ({ windowBytes, answersInTen, steps }) => {
      const reader = new Reader(windowBytes);
      let offered = 0;
      for (const { ms, sizes, lost, answers, isChecked } of steps) {
        reader.nowMs += ms;
        offered += sizes.length + lost;
        reader.offer(sizes, lost);
        for (const n of answers) {
          if (n >= answersInTen) break;
          reader.answer();
        }
        if (isChecked) reader.check();
        expect(reader.accounted).toBe(offered);
      }
      expect(reader.maxInFlightBytes).toBeLessThanOrEqual(
        Math.max(
          windowBytes,
          WATCH_UNACKNOWLEDGED_BURST_BYTES + 3 * WATCH_UNACKNOWLEDGED_BYTES_PER_SECOND,
        ),
      );
      // Once it reads, the number of all missed messages is sent.
      while (reader.syncs.length > 0) reader.answer();
      reader.nowMs += 10_000;
      reader.check();
      expect(reader.state.missed).toBe(0);
      expect(reader.sent + reader.missed).toBe(offered);
    }),
    // The limit is for shrinking, which can take minutes.
    { seed: 1, numRuns: 20, interruptAfterTimeLimit: 60_000 },
  );
});

test("a watcher that acknowledges is sent everything, at any rate", () => {
  const reader = new Reader();
  for (let step = 0; step < 2_000; step++) {
    reader.nowMs += 20;
    reader.offer(messages(100));
    while (reader.syncs.length > 0) reader.answer();
  }
  expect([reader.sent, reader.missed]).toEqual([200_000, 0]);
});

test("a watcher that never acknowledges is sent everything up to a rate, and a part beyond it", () => {
  const reader = new Reader();
  for (let second = 1; second <= 20; second++) {
    reader.nowMs += 1_000;
    reader.offer(messages(100));
  }
  expect([reader.sent, reader.missed]).toEqual([2_000, 0]);
  for (let tick = 1; tick <= 600; tick++) {
    reader.nowMs += 100;
    reader.offer(messages(100));
  }
  expect(reader.accounted).toBe(62_000);
  const perSecond = ((reader.sent - 2_000) * 300) / 60;
  expect(perSecond).toBeGreaterThan(WATCH_UNACKNOWLEDGED_BYTES_PER_SECOND * 0.8);
  expect(perSecond).toBeLessThan(
    WATCH_UNACKNOWLEDGED_BYTES_PER_SECOND + WATCH_UNACKNOWLEDGED_BURST_BYTES / 60,
  );
});

test("a watcher that stops acknowledging is sent at most its window, and finally disconnected", () => {
  const reader = new Reader();
  reader.offer(messages(40));
  reader.answer();
  expect(reader.state.hasAcknowledged).toBe(true);
  for (let tick = 1; tick <= 1_000; tick++) reader.offer(messages(10));
  expect(reader.maxInFlightBytes).toBeLessThanOrEqual(WATCH_WINDOW_MAX_BYTES);
  expect(reader.accounted).toBe(10_040);
  expect(isStuck(reader.state, reader.limits())).toBe(false);
  reader.nowMs += WATCH_BEHIND_MAX_MS;
  expect(isStuck(reader.state, reader.limits())).toBe(true);
});

test("a watcher that never acknowledges is finally disconnected where the platform reports no queue", () => {
  const reader = new Reader();
  let seconds = 0;
  for (; seconds < 1_000 && !isStuck(reader.state, reader.limits()); seconds++) {
    reader.nowMs += 1_000;
    reader.offer(messages(100));
    acknowledge(reader.state, reader.state.sentBytes);
  }
  expect(reader.state.sentBytes).toBeLessThanOrEqual(WATCH_UNACKNOWLEDGED_MAX_BYTES);
  expect(reader.state.sentBytes).toBeGreaterThan(WATCH_UNACKNOWLEDGED_MAX_BYTES - 300);
  expect(reader.state.pendingSyncs.length).toBeLessThan(10);
  expect(reader.accounted).toBe(seconds * 100);
});

test("a watcher that never acknowledges is sent messages as long as the platform's queue is empty", () => {
  const state = createFlowState(0);
  for (let nowMs = 0; nowMs < 600_000; nowMs += 1_000) {
    const limits = { nowMs, windowBytes: WATCH_WINDOW_MAX_BYTES, queuedBytes: 0 };
    expect(admitMessages(state, messages(100), limits)).toBe(100);
    expect(isStuck(state, limits)).toBe(false);
  }
  expect(state.sentBytes).toBeGreaterThan(2 * WATCH_UNACKNOWLEDGED_MAX_BYTES);
});

test("a watcher that never acknowledges is disconnected earlier where the platform's queue is full", () => {
  const reader = new Reader();
  for (let tick = 1; tick <= 100; tick++) reader.offer(messages(100));
  reader.nowMs += WATCH_BEHIND_MAX_MS;
  expect(isStuck(reader.state, reader.limits())).toBe(false);
  expect(isStuck(reader.state, reader.limits(WATCH_WINDOW_MAX_BYTES + 1))).toBe(true);
});

test("bytes in the platform's queue count as in flight", () => {
  const state = createFlowState(0);
  const limits = { nowMs: 0, windowBytes: 32_768, queuedBytes: 32_768 };
  expect(admitMessages(state, messages(3), limits)).toBe(0);
  expect(takeMissedCount(state, limits)).toBe(0);
  expect(takeMissedCount(state, { ...limits, queuedBytes: 0 })).toBe(3);
});

test("an acknowledgement of a sync that was never sent changes nothing", () => {
  const reader = new Reader();
  reader.offer(messages(40));
  const [sync] = reader.syncs;
  for (const n of [1_000_000, -1, 0, 1, reader.state.sentBytes]) {
    if (n !== sync) acknowledge(reader.state, n);
  }
  expect(reader.state).toMatchObject({ hasAcknowledged: false, acknowledgedBytes: 0 });
  reader.answer();
  expect(reader.state).toMatchObject({ hasAcknowledged: true, acknowledgedBytes: 40 * 300 });
});

test("all windows together are bounded, and each is large enough to be useful", () => {
  for (const watchers of [1, 10, 100, 1_000]) {
    const windowBytes = getWindowBytes(watchers);
    expect(windowBytes * watchers).toBeLessThanOrEqual(WATCH_WINDOWS_BYTES);
    expect(windowBytes).toBeGreaterThanOrEqual(32_768);
  }
});
