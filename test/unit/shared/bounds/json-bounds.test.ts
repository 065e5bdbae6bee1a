import { expect, test } from "vitest";
import { toUtf8 } from "../../../../shared/bytes.ts";
import {
  JSON_MAX_LEVELS,
  JSON_MAX_VALUES,
  exceedsJsonBounds,
} from "../../../../shared/bounds/json-bounds.ts";

const exceeds = (text: string) => exceedsJsonBounds(toUtf8(text));
const nest = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
const list = (values: number, value: string) => `[${Array(values).fill(value).join(",")}]`;

test("a JSON text has a bounded number of levels", () => {
  expect([exceeds(nest(JSON_MAX_LEVELS)), exceeds(nest(JSON_MAX_LEVELS + 1))]).toEqual([
    false,
    true,
  ]);
  expect(exceeds(list(JSON_MAX_LEVELS + 1, "{}"))).toBe(false);
});

test("a JSON text has a bounded number of values, whatever they are", () => {
  for (const value of ["1", '"a"', '"a":1']) {
    expect(exceeds(list(JSON_MAX_VALUES - 1, value))).toBe(false);
    expect(exceeds(list(JSON_MAX_VALUES, value))).toBe(true);
  }
  expect(exceeds(list(JSON_MAX_VALUES / 2, "[]"))).toBe(true);
});

test("the characters of a string are not counted", () => {
  const text = '[,{"\\'.repeat(JSON_MAX_VALUES);
  expect(exceeds(JSON.stringify({ [text]: text }))).toBe(false);
  expect(exceeds('["unfinished')).toBe(false);
});
