import { describe, expect, test } from "vitest";
import {
  describeLongSlug,
  isAllowedLabel,
  findLabelError,
  findReservedLabelError,
  toLabel,
  generateRandomName,
} from "../../../protocol/names.ts";

test("an empty list of patterns allows every name", () => {
  expect(isAllowedLabel([], "x")).toBe(true);
  expect(isAllowedLabel(["a", "b-*"], "b-1")).toBe(true);
  expect(isAllowedLabel(["a", "b-*"], "c")).toBe(false);
});

describe("a tunnel's label", () => {
  test("has the slug of its project as a suffix, except in the default project", () => {
    expect(toLabel("api", "default")).toBe("api");
    expect(toLabel("api", "staging")).toBe("api-staging");
  });

  test.each(["a", "a-b", "0", "a--b", "x".repeat(63)])("may be %j", (label) => {
    expect(findLabelError(label)).toBeNull();
  });

  test.each(["", "-a", "a-", "A", "a.b", "a_b", "ä", "x".repeat(64), "a\n"])(
    "may not be %j",
    (label) => expect(findLabelError(label)).not.toBeNull(),
  );

  test.each(["api", "www", "app", "admin", "mail", "localhost", "ns3", "xn--80ak6aa92e"])(
    "is reserved: %j",
    (label) => expect(findReservedLabelError(label)).not.toBeNull(),
  );

  test.each(
    `adm1n 4dmin adrnin l0gin 1ogin 1og1n log-in sign-up ma1l rnail web-mail vvww w-w-w 5tatus ap1
    supp0rt c0nsole underpa5s under-pass ab--cd`.split(/\s+/),
  )("may not imitate a reserved one: %j", (label) =>
    expect(findReservedLabelError(label)).toMatch(/looks like|encoded/),
  );

  test.each(
    `mall apple app1 app4 app5 app-5 tunnel5 api2 api-v2 web mailer corn load-1 status-page admins
    staging-api blog-3 my-app shop`.split(/\s+/),
  )("may be similar to a reserved one: %j", (label) =>
    expect(findReservedLabelError(label)).toBeNull(),
  );
});

const generateNames = (count: number, projectSlug = "default") =>
  Array.from({ length: count }, () => generateRandomName(projectSlug)!);

test("random names are valid labels, not reserved, and differ", () => {
  const names = generateNames(1_000);
  for (const name of names) {
    expect(findLabelError(name)).toBeNull();
    expect(findReservedLabelError(name)).toBeNull();
  }
  expect(new Set(names).size).toBe(names.length);
});

test("random names have 43 bits: of 100,000 no two are the same, and no word is rare", () => {
  const names = generateNames(100_000);
  // With a correct generator, one run in about two thousand has two equal names.
  expect(new Set(names).size).toBe(names.length);
  let bits = 0;
  for (const part of [0, 1]) {
    const counts = Map.groupBy(names, (name) => name.split("-")[part]);
    const average = names.length / counts.size;
    for (const { length } of counts.values()) expect(length).toBeGreaterThan(average / 2);
    bits += Math.log2(counts.size);
  }
  const tails = names.map((name) => name.split("-")[2]!);
  expect(tails.every((tail) => /^[0-9a-hjkmnp-tv-z]{6}$/.test(tail))).toBe(true);
  expect(bits + 6 * Math.log2(new Set(tails.join("")).size)).toBeGreaterThan(43);
});

test.each([39, 42, 47, 53])(
  "random names fit before a project's slug of %d characters, and differ",
  (length) => {
    const projectSlug = "p".repeat(length);
    const names = generateNames(10_000, projectSlug);
    for (const name of names) expect(findLabelError(toLabel(name, projectSlug))).toBeNull();
    expect(new Set(names).size).toBe(names.length);
    const wordless = names.filter((name) => !name.includes("-"));
    expect(wordless.every((name) => /^[0-9a-hjkmnp-tv-z]{9}$/.test(name))).toBe(true);
    expect(wordless.length > 0).toBe(length > 39);
  },
);

test("a project has no random names where its slug leaves less than 9 characters", () => {
  expect(generateRandomName("p".repeat(54))).toBeNull();
  expect(describeLongSlug("p".repeat(54))).toContain("8 of 63 characters");
  expect(describeLongSlug("p".repeat(62))).toContain("no character");
});
