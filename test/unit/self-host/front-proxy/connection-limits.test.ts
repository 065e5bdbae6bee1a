/** How many connections the server accepts, in total and from one address. */
import { expect, test } from "vitest";
import { getConnectionLimits } from "../../../../self-host/front-proxy/limits.ts";

test("the total follows the limit of open files, and one address may have an eighth of it", () => {
  expect(getConnectionLimits(20_512, {})).toEqual({ total: 5_000, perSource: 625 });
  expect(getConnectionLimits(Infinity, {})).toEqual({ total: 16_384, perSource: 2_048 });
});

test("one address may have an eighth of the total that the operator has set", () => {
  expect(getConnectionLimits(65_536, { total: 1_000 })).toEqual({ total: 1_000, perSource: 125 });
  expect(getConnectionLimits(65_536, { total: 1_000, perSource: 900 })).toEqual({
    total: 1_000,
    perSource: 900,
  });
});

test("one address may have 64 connections, however few there are in total", () => {
  expect(getConnectionLimits(1_024, {})).toEqual({ total: 128, perSource: 64 });
});
