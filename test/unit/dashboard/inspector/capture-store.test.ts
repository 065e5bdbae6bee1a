/** The store of captured requests: when it reads the list again. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  CaptureStore,
  type CaptureWatchEvents,
} from "../../../../dashboard/inspector/capture-store.ts";
import type { CaptureSummary } from "../../../../protocol/schemas/inspector/captures.ts";

const PAUSE_MS = 3_000;
const list = vi.fn<() => Promise<CaptureSummary[]>>();
const server = { list, watch: () => () => {} };
const listener = { onPut: () => {}, onTrim: () => {}, onStatus: () => {} };

beforeEach(() => {
  vi.useFakeTimers();
  list.mockReset();
});
afterEach(() => vi.useRealTimers());

test("a list that can't be read is read again after a pause, until it can be read", async () => {
  list.mockRejectedValue(new Error("unreachable"));
  const store = new CaptureStore(server);
  const stop = store.listen(listener);
  await vi.advanceTimersByTimeAsync(PAUSE_MS - 1);
  expect(list).toHaveBeenCalledTimes(1);
  expect(store.error).toBeInstanceOf(Error);
  await vi.advanceTimersByTimeAsync(PAUSE_MS);
  expect(list).toHaveBeenCalledTimes(2);

  list.mockResolvedValue([]);
  await vi.advanceTimersByTimeAsync(10 * PAUSE_MS);
  expect(list).toHaveBeenCalledTimes(3);
  expect([store.error, store.status]).toEqual([undefined, "connecting"]);
  stop();
});

test("the first connection is no reconnection", async () => {
  list.mockResolvedValue([]);
  let events: CaptureWatchEvents | undefined;
  const watch = (given: CaptureWatchEvents) => {
    events = given;
    return () => {};
  };
  const store = new CaptureStore({ list, watch });
  const stop = store.listen(listener);
  const statuses = [store.status];
  await vi.advanceTimersByTimeAsync(0);
  statuses.push(store.status);
  events!.onOpen();
  statuses.push(store.status);
  events!.onClose();
  statuses.push(store.status);
  expect(statuses).toEqual(["loading", "connecting", "live", "reconnecting"]);
  stop();
});

test("what ends during the first reading is read at once; later readings are apart", async () => {
  list.mockResolvedValue([]);
  const store = new CaptureStore(server);
  const stop = store.listen(listener);
  store.catchUp();
  await vi.advanceTimersByTimeAsync(0);
  expect(list).toHaveBeenCalledTimes(2);
  store.catchUp();
  store.catchUp();
  await vi.advanceTimersByTimeAsync(0);
  expect(list).toHaveBeenCalledTimes(3);
  await vi.advanceTimersByTimeAsync(PAUSE_MS);
  expect(list).toHaveBeenCalledTimes(4);
  stop();
});
