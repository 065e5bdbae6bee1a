import { expect, test } from "vitest";
import { matchesWildcard } from "../../../../shared/text/wildcard.ts";

test.each([
  ["*", "anything", true],
  ["*", "", true],
  ["dev-*", "dev-", true],
  ["dev-*", "dev-api", true],
  ["dev-*", "xdev-api", false],
  ["*-dev", "api-dev", true],
  ["*-dev", "api-dev-", false],
  ["a*b*c", "abc", true],
  ["a*b*c", "a1b2b3c", true],
  ["a*b*c", "acb", false],
  ["**", "x", true],
  ["a*a", "a", false],
  ["a*a", "aa", true],
  ["a*ba*a", "aba", false],
  ["exact", "exact", true],
  ["exact", "exactly", false],
  ["", "", true],
  ["", "x", false],
])("the pattern %j and the text %j: %j", (pattern, text, matches) => {
  expect(matchesWildcard(pattern, text)).toBe(matches);
});

test("a pattern that is designed to be slow is matched quickly", () => {
  const startedAt = performance.now();
  expect(matchesWildcard(`${"a*".repeat(31)}b`, "a".repeat(63))).toBe(false);
  expect(performance.now() - startedAt).toBeLessThan(10_000);
});
