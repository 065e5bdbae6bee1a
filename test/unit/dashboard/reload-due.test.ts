/** When data that could not be loaded is loaded again. */
import { expect, test } from "vitest";
import { RequestError } from "../../../dashboard/api/request.ts";
import { isReloadDue } from "../../../dashboard/app/reload-due.ts";
import type { ErrorBody } from "../../../protocol/schemas/error-body.ts";

const FAILED_AT_MS = 1_000_000;

function isDue(error: Error | null, afterMs: number, fetchStatus: "idle" | "fetching" = "idle") {
  const state = { fetchStatus, error, errorUpdatedAt: FAILED_AT_MS };
  return isReloadDue(state, FAILED_AT_MS + afterMs);
}

const fail = (body: Partial<ErrorBody>) => new RequestError(body, null);

test("it is while the server can't be reached or is unavailable, but not during a request", () => {
  expect([isDue(fail({}), 0), isDue(fail({ error: "unavailable" }), 0)]).toEqual([true, true]);
  expect(isDue(fail({}), 0, "fetching")).toBe(false);
});

test.each(["rate_limited", "unavailable"] as const)(
  "it is not before the time that a response with the code %s sets",
  (error) => {
    const refused = fail({ error, retry_after_seconds: 30 });
    expect([isDue(refused, 29_999), isDue(refused, 30_000)]).toEqual([false, true]);
  },
);

test("it is not after another error, nor after none", () => {
  const errors = [fail({ error: "forbidden" }), fail({ error: "internal" }), new Error("x"), null];
  expect(errors.map((error) => isDue(error, 60_000))).toEqual([false, false, false, false]);
});
