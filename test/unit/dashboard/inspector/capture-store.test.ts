/** The store of captured requests: when it reads the list again. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CaptureStore } from "../../../../dashboard/inspector/capture-store.ts";
import { listCaptures } from "../../../../dashboard/inspector/list-captures.ts";

vi.mock("../../../../dashboard/inspector/list-captures.ts", () => ({ listCaptures: vi.fn() }));
vi.mock("../../../../dashboard/inspector/capture-watch.ts", () => ({
  CaptureWatch: class {
    start() {}
    close() {}
  },
}));

const PAUSE_MS = 3_000;
const listener = { onPut: () => {}, onTrim: () => {}, onStatus: () => {} };

beforeEach(() => {
  vi.useFakeTimers();
  vi.mocked(listCaptures).mockReset();
});
afterEach(() => vi.useRealTimers());

test("a list that can't be read is read again after a pause, until it can be read", async () => {
  vi.mocked(listCaptures).mockRejectedValue(new Error("unreachable"));
  const store = new CaptureStore();
  const stop = store.listen(listener);
  await vi.advanceTimersByTimeAsync(PAUSE_MS - 1);
  expect(listCaptures).toHaveBeenCalledTimes(1);
  expect(store.error).toBeInstanceOf(Error);
  await vi.advanceTimersByTimeAsync(PAUSE_MS);
  expect(listCaptures).toHaveBeenCalledTimes(2);

  vi.mocked(listCaptures).mockResolvedValue([]);
  await vi.advanceTimersByTimeAsync(10 * PAUSE_MS);
  expect(listCaptures).toHaveBeenCalledTimes(3);
  expect([store.error, store.status]).toEqual([undefined, "reconnecting"]);
  stop();
});

test("what ends during the first reading is read at once; later readings are apart", async () => {
  vi.mocked(listCaptures).mockResolvedValue([]);
  const store = new CaptureStore();
  const stop = store.listen(listener);
  store.catchUp();
  await vi.advanceTimersByTimeAsync(0);
  expect(listCaptures).toHaveBeenCalledTimes(2);
  store.catchUp();
  store.catchUp();
  await vi.advanceTimersByTimeAsync(0);
  expect(listCaptures).toHaveBeenCalledTimes(3);
  await vi.advanceTimersByTimeAsync(PAUSE_MS);
  expect(listCaptures).toHaveBeenCalledTimes(4);
  stop();
});
