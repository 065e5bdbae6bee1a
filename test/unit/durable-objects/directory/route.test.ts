import { expect, test } from "vitest";
import { newerRoute } from "../../../../durable-objects/directory/route.ts";

const first = { tunnelId: "a", version: 1 };
const second = { tunnelId: null, version: 2 };

test("the newest version of a host's route wins, whichever arrives last", () => {
  expect(newerRoute(undefined, first)).toBe(first);
  expect(newerRoute(first, second)).toBe(second);
  expect(newerRoute(second, first)).toBe(second);
});

test("the same version again changes nothing", () => {
  expect(newerRoute(first, { ...first })).toBe(first);
});
