import { expect, test } from "vitest";
import {
  countChars,
  findHeader,
  headerPairs,
  isEventStream,
  replaceHeaderValues,
} from "../../../shared/raw-headers.ts";

const LINES = ["accept", "a", "cookie", "b", "accept", "c"];

test("repeated names stay apart and in order", () => {
  expect([...headerPairs(LINES)]).toEqual([
    ["accept", "a"],
    ["cookie", "b"],
    ["accept", "c"],
  ]);
});

test.each([
  ["accept", "a"],
  ["cookie", "b"],
  ["cookid", null],
  ["b", null],
])("the first value of %s is found, whatever the case of its name: %s", (name, value) => {
  expect(findHeader(["Accept", "a", "COOKIE", "b", "accept", "c"], name)).toBe(value);
});

test("names and values are counted", () => {
  expect(countChars(LINES)).toBe(21);
});

test("values are replaced in place, names are not", () => {
  const lines = [...LINES];
  replaceHeaderValues(lines, (name, value) => (name === "accept" ? "accept" : value));
  expect(lines).toEqual(["accept", "accept", "cookie", "b", "accept", "accept"]);
});

test.each(["text/event-stream", "Text/Event-Stream; charset=utf-8", " text/event-stream ;a=b"])(
  "%j is an event stream",
  (contentType) => {
    expect(isEventStream(contentType)).toBe(true);
  },
);

test.each(["", "text/html", "text/event-streams", "text/event-stream-2", "a; text/event-stream"])(
  "%j is no event stream",
  (contentType) => {
    expect(isEventStream(contentType)).toBe(false);
  },
);
