/** Requests on their way to a server with one thread, which the test plays. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type {
  FairQueue,
  QueuedItem,
} from "../../../../../self-host/front-proxy/queue/fair-queue.ts";
import {
  createRequestQueue,
  REQUESTS_IN_FLIGHT_MAX,
} from "../../../../../self-host/front-proxy/queue/workerd-queues.ts";
import { SourceMemory } from "../../../../../shared/bounds/source-memory.ts";

const MEMORY_BYTES = 2_000;
const PROBE_MAX_MS = 10;

let queue: FairQueue;
/** The names of the requests that the server has received. */
let sent: string[];
let answerProbe: (() => void) | undefined;

beforeEach(() => {
  vi.useFakeTimers();
  sent = [];
  answerProbe = undefined;
  queue = createRequestQueue(
    () => new Promise((resolve) => (answerProbe = resolve)),
    new SourceMemory(MEMORY_BYTES),
  );
});
afterEach(() => void vi.useRealTimers());

function add(source: string, name = source, bytes = 1): QueuedItem | undefined {
  return queue.add({ bytes, findSource: () => source, send: () => sent.push(name) });
}

/** Requests of one source, as many as are sent before any has a response. */
function fill(): QueuedItem[] {
  const requests = Array.from({ length: REQUESTS_IN_FLIGHT_MAX }, () => add("flood")!);
  expect(sent).toHaveLength(REQUESTS_IN_FLIGHT_MAX);
  sent = [];
  return requests;
}

test("sources take turns, and the requests of each go in their order", () => {
  const inFlight = fill();
  for (const name of ["a1", "a2", "a3", "a4", "b1", "b2", "c1"]) add(name[0]!, name);
  expect(queue.waitingCount).toBe(7);
  for (const request of inFlight) request.end();
  expect(sent).toEqual(["a1", "b1", "c1", "a2", "b2", "a3", "a4"]);
  expect(queue.waitingCount).toBe(0);
});

test("a response makes room for one request, however often its end is told", () => {
  const [first] = fill();
  add("a");
  add("b");
  first!.end();
  first!.end();
  expect(sent).toEqual(["a"]);
});

test("requests whose responses take long make room when the server has read them, and only once", async () => {
  const inFlight = fill();
  for (let at = 0; at < 2 * REQUESTS_IN_FLIGHT_MAX; at += 1) add("a", `a${at}`);
  await vi.advanceTimersByTimeAsync(PROBE_MAX_MS);
  expect(sent).toEqual([]);
  answerProbe!();
  await vi.advanceTimersByTimeAsync(0);
  expect(sent).toHaveLength(REQUESTS_IN_FLIGHT_MAX);
  for (const request of inFlight) request.end();
  expect(sent).toHaveLength(REQUESTS_IN_FLIGHT_MAX);

  await vi.advanceTimersByTimeAsync(PROBE_MAX_MS);
  answerProbe!();
  await vi.advanceTimersByTimeAsync(0);
  expect(sent).toHaveLength(2 * REQUESTS_IN_FLIGHT_MAX);
});

test("requests that follow a probe count until the next one", async () => {
  const [first, second] = fill();
  add("a");
  add("b");
  add("c");
  await vi.advanceTimersByTimeAsync(PROBE_MAX_MS);
  first!.end();
  second!.end();
  expect(sent).toEqual(["a", "b"]);
  answerProbe!();
  await vi.advanceTimersByTimeAsync(0);
  expect(sent).toEqual(["a", "b", "c"]);
  // Those three are in flight.
  for (let at = 3; at < REQUESTS_IN_FLIGHT_MAX; at += 1) add("d");
  expect(queue.waitingCount).toBe(0);
  add("e");
  expect(queue.waitingCount).toBe(1);
});

test("a probe is sent only while requests wait", async () => {
  const inFlight = fill();
  await vi.advanceTimersByTimeAsync(PROBE_MAX_MS);
  expect(answerProbe).toBeUndefined();
  add("a")!.end();
  await vi.advanceTimersByTimeAsync(PROBE_MAX_MS);
  expect(answerProbe).toBeUndefined();
  for (const request of inFlight) request.end();
});

test("a request that is given up while it waits is never sent, and takes no turn", () => {
  const [first] = fill();
  const left = add("a", "left")!;
  add("a", "stays");
  add("b");
  left.end();
  expect(queue.waitingCount).toBe(2);
  first!.end();
  expect(sent).toEqual(["stays"]);
});

test("the heads that wait are bounded, and one source can't take the room of others", () => {
  fill();
  const half = MEMORY_BYTES / 2;
  const large = add("a", "a", half)!;
  expect(add("a", "a")).toBeUndefined();
  expect(add("b", "b", half / 2)).toBeDefined();
  large.end();
  expect(add("a", "a")).toBeDefined();
});
