import { expect, test } from "vitest";
import { pickNewest } from "../../../durable-objects/newest-version.ts";

const first = { tunnelId: "a", version: 1 };
const second = { tunnelId: "b", version: 2 };

test("the copy with the newest version is stored, whichever arrives last", () => {
  expect(pickNewest(undefined, first)).toBe(first);
  expect(pickNewest(first, second)).toBe(second);
  expect(pickNewest(second, first)).toBe(second);
});

test("the same version again changes nothing", () => {
  expect(pickNewest(first, { ...first })).toBe(first);
});
