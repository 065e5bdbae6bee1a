import { beforeEach, expect, test } from "vitest";
import { SentFilters } from "../../../dashboard/ui/forms/sent-filters.ts";

let sent: SentFilters;
beforeEach(() => {
  sent = new SentFilters();
});

test("filters that were sent are received as such, also when some are skipped", () => {
  for (const filter of ["a", "ab", "abc"]) expect(sent.send(filter, "")).toBe(true);
  expect(["a", "abc", "a"].map((filter) => sent.receive(filter))).toEqual([true, true, false]);
});

test("the filter of the URL is sent again while another one is on its way, and otherwise not", () => {
  expect(sent.send("a", "a")).toBe(false);
  expect(sent.send("ab", "a")).toBe(true);
  expect(sent.send("ab", "a")).toBe(false);
  expect(sent.send("a", "a")).toBe(true);
});

test("after a change from elsewhere, a filter that was replaced is a change when it comes back", () => {
  sent.send("a", "");
  expect(["status:5xx", "a"].map((filter) => sent.receive(filter))).toEqual([false, false]);
});
