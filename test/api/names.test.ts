import { describe, expect, test } from "vitest";
import {
  isAllowedLabel,
  isReservedLabel,
  labelFault,
  labelOf,
  matchesPattern,
  newRandomName,
} from "../../protocol/names.ts";

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
  ["exact", "exact", true],
  ["exact", "exactly", false],
  ["", "", true],
  ["", "x", false],
])("the pattern %j and the label %j: %j", (pattern, label, matches) => {
  expect(matchesPattern(pattern, label)).toBe(matches);
});

test("a pattern made to be slow is not", () => {
  const startedAt = performance.now();
  expect(matchesPattern(`${"a*".repeat(31)}b`, "a".repeat(63))).toBe(false);
  expect(performance.now() - startedAt).toBeLessThan(50);
});

test("no pattern allows every name", () => {
  expect(isAllowedLabel([], "x")).toBe(true);
  expect(isAllowedLabel(["a", "b-*"], "b-1")).toBe(true);
  expect(isAllowedLabel(["a", "b-*"], "c")).toBe(false);
});

describe("a tunnel's label", () => {
  test("carries the slug of any project but the default one", () => {
    expect(labelOf("api", "default")).toBe("api");
    expect(labelOf("api", "staging")).toBe("api-staging");
  });

  test.each(["a", "a-b", "0", "a--b", "x".repeat(63)])("may be %j", (label) => {
    expect(labelFault(label)).toBeNull();
  });

  test.each(["", "-a", "a-", "A", "a.b", "a_b", "ä", "x".repeat(64), "a\n"])(
    "may not be %j",
    (label) => expect(labelFault(label)).not.toBeNull(),
  );

  test.each(["api", "www", "app", "admin", "mail", "localhost", "xn--80ak6aa92e"])(
    "is not for tunnels: %j",
    (label) => expect(isReservedLabel(label)).toBe(true),
  );
});

test("random names are good labels, not ours, and differ", () => {
  const names = Array.from({ length: 1_000 }, newRandomName);
  for (const name of names) {
    expect(labelFault(name)).toBeNull();
    expect(isReservedLabel(name)).toBe(false);
  }
  expect(new Set(names).size).toBe(names.length);
});
