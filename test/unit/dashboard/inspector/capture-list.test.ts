import { expect, test } from "vitest";
import { CaptureList } from "../../../../dashboard/inspector/capture-list.ts";
import { buildCaptureSummary, getCaptureId } from "../../../harness/tunnel/capture.ts";

test("requests are in the order of their ids, whatever the order in which they arrive", () => {
  const list = new CaptureList();
  for (const number of [3, 1, 4, 2, 5]) list.put(buildCaptureSummary(number));
  expect(list.toArray().map(({ id }) => id)).toEqual([5, 4, 3, 2, 1].map(getCaptureId));
  expect(list.findIndex(getCaptureId(4))).toBe(1);
  expect(list.getNewest(1)?.id).toBe(getCaptureId(4));
  expect(list.findIndex(getCaptureId(9))).toBe(-1);
});

test("a new state replaces the earlier one, and a request that has ended does not open again", () => {
  const list = new CaptureList();
  expect(list.put(buildCaptureSummary(1, { state: "open", status: null }))).toBe("added");
  expect(list.put(buildCaptureSummary(1, { state: "complete" }))).toBe("replaced");
  expect(list.put(buildCaptureSummary(1, { state: "complete" }))).toBe("unchanged");
  expect(list.put(buildCaptureSummary(1, { state: "open", status: null }))).toBe("unchanged");
  expect(list.size).toBe(1);
  expect(list.get(getCaptureId(1))?.state).toBe("complete");
});

test("the oldest requests are removed beyond the bound", () => {
  const list = new CaptureList();
  for (let number = 1; number <= 12; number += 1) list.put(buildCaptureSummary(number));
  expect(list.keepNewest(10)).toBe(2);
  expect(list.keepNewest(10)).toBe(0);
  expect(list.oldestId).toBe(getCaptureId(3));
  expect(list.get(getCaptureId(2))).toBeUndefined();
  expect(list.deleteOlderThan(getCaptureId(11))).toBe(8);
  expect(list.size).toBe(2);
});
