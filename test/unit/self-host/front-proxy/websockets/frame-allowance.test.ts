/** How frames of WebSockets go on to a server with one thread, which the test plays. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { FairQueue } from "../../../../../self-host/front-proxy/queue/fair-queue.ts";
import {
  createFrameQueue,
  FRAMES_IN_FLIGHT_MAX,
  FRAMES_PAUSE_MAX_MS,
} from "../../../../../self-host/front-proxy/queue/workerd-queues.ts";
import { FrameAllowance } from "../../../../../self-host/front-proxy/websockets/frame-allowance.ts";

const MAX = FRAMES_IN_FLIGHT_MAX.visitor;

let queue: FairQueue;
/** The server's answers to probes, which it has not sent yet. */
let answers: (() => void)[];

beforeEach(() => {
  vi.useFakeTimers();
  answers = [];
  queue = createFrameQueue("visitor", () => new Promise((resolve) => answers.push(resolve)));
});
afterEach(() => void vi.useRealTimers());

/** A connection that has more frames than can pass, and sends as many as may. */
class Flood {
  frames = 0;
  readonly allowance: FrameAllowance;

  constructor(source: string) {
    this.allowance = new FrameAllowance(queue, source, () => this.#send());
    this.#send();
  }

  #send(): void {
    do this.frames += 1;
    while (this.allowance.take());
  }
}

/** The server reads what it has received. */
async function readAll(): Promise<void> {
  await vi.runAllTimersAsync();
  for (const answer of answers.splice(0)) answer();
  await vi.runAllTimersAsync();
}

/** Frames of all connections that the server receives before it has answered the next probe. */
async function countUntilNextProbe(floods: Flood[]): Promise<number[]> {
  const before = floods.map(({ frames }) => frames);
  await readAll();
  return floods.map(({ frames }, index) => frames - before[index]!);
}

test("whatever a connection sends, few frames of it are in flight until the server has read them", async () => {
  const flood = new Flood("source");
  await vi.runAllTimersAsync();
  expect(flood.frames).toBe(MAX + 1);
  expect(flood.allowance.isUsedUp).toBe(true);
  for (let read = 0; read < 10; read += 1) {
    expect(await countUntilNextProbe([flood])).toEqual([MAX]);
  }
});

test.each([
  { readMs: 4, pauseMs: 4 },
  { readMs: 1_000, pauseMs: FRAMES_PAUSE_MAX_MS },
])(
  "when the server took $readMs ms to read frames of visitors, none are sent for $pauseMs ms",
  async ({ readMs, pauseMs }) => {
    const flood = new Flood("source");
    await vi.advanceTimersByTimeAsync(0);
    expect(flood.frames).toBe(MAX + 1);
    await vi.advanceTimersByTimeAsync(readMs);
    answers[0]!();
    await vi.advanceTimersByTimeAsync(pauseMs - 1);
    expect(flood.frames).toBe(MAX + 1);
    await vi.advanceTimersByTimeAsync(1);
    expect(flood.frames).toBe(2 * MAX + 1);
  },
);

test("sources take turns, and so do the connections of one source", async () => {
  const attackers = Array.from({ length: 4 }, () => new Flood("attacker"));
  const other = new Flood("other");
  const floods = [...attackers, other];
  await readAll();
  let frames = await countUntilNextProbe(floods);
  for (let read = 1; read < 10; read += 1) {
    const more = await countUntilNextProbe(floods);
    frames = frames.map((count, index) => count + more[index]!);
  }
  const [first, ...rest] = frames.slice(0, 4);
  for (const count of rest) expect(Math.abs(count - first!)).toBeLessThanOrEqual(1);
  expect(frames[4]).toBe((10 * MAX) / 2);
});

test("a connection that sends few frames waits for no other of its source longer than their turns", async () => {
  const flood = new Flood("source");
  const resume = vi.fn<() => void>();
  const idle = new FrameAllowance(queue, "source", resume);
  expect(idle.take()).toBe(false);
  await readAll();
  expect(resume).toHaveBeenCalledTimes(1);
  expect(idle.isUsedUp).toBe(false);
  expect(flood.allowance.isUsedUp).toBe(true);
});

test("a connection that sends in moderation never waits: a probe is sent when half of the room is used", async () => {
  const allowance = new FrameAllowance(queue, "source", () => expect.unreachable());
  for (let frames = 1; frames <= 10 * MAX; frames += 1) {
    expect(allowance.take()).toBe(true);
    if (frames % (MAX / 2) !== 0) continue;
    await vi.runAllTimersAsync();
    expect(answers).toHaveLength(1);
    await readAll();
  }
});

test("a connection that has ended leaves its turn to others", async () => {
  const [first, second] = [new Flood("a"), new Flood("b")];
  await readAll();
  first.allowance.end();
  expect(await countUntilNextProbe([first, second])).toEqual([0, MAX]);
  second.allowance.end();
  expect(queue.waitingCount).toBe(0);
});
