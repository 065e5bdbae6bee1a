import { expect, test } from "vitest";
import { headerPairs, replaceHeaderValues } from "../../../shared/raw-headers.ts";

const LINES = ["accept", "a", "cookie", "b", "accept", "c"];

test("repeated names stay apart and in order", () => {
  expect([...headerPairs(LINES)]).toEqual([
    ["accept", "a"],
    ["cookie", "b"],
    ["accept", "c"],
  ]);
});

test("values are replaced in place, names are not", () => {
  const lines = [...LINES];
  replaceHeaderValues(lines, (name, value) => (name === "accept" ? "accept" : value));
  expect(lines).toEqual(["accept", "accept", "cookie", "b", "accept", "accept"]);
});
