/** The turns of transactions for the gateway's connections. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { formatApplicationName, parseApplicationName } from "../../../protocol/application-name.ts";
import { SESSIONS_WAITING_MAX, SessionTurns } from "../../../self-host/gateway/session-turns.ts";

const CONNECTIONS = 10;
const WAIT_MAX_MS = 10_000;
const stays = new Promise<void>(() => undefined);

let turns: SessionTurns;
beforeEach(() => {
  vi.useFakeTimers();
  turns = new SessionTurns({ connections: CONNECTIONS, waitMaxMs: WAIT_MAX_MS });
});
afterEach(() => {
  vi.useRealTimers();
});

/** @returns how many of them have their turn at once. */
async function begin(caller: string | undefined, count: number): Promise<number> {
  let begun = 0;
  for (let at = 0; at < count; at += 1) {
    void turns.begin(caller, stays).then((isTurn) => (begun += Number(isTurn)));
  }
  await vi.advanceTimersByTimeAsync(0);
  return begun;
}

test("one caller gets half of the connections, and others get theirs at once", async () => {
  expect(await begin("a", 100)).toBe(CONNECTIONS / 2);
  expect(await begin("b", 1)).toBe(1);
  expect(turns.waitingCount).toBe(95);
});

test("an end gives the connection to the first that may have it, in order of arrival", async () => {
  await begin("a", CONNECTIONS / 2);
  const order: string[] = [];
  for (const name of ["first", "second"]) {
    void turns.begin("a", stays).then(() => order.push(name));
  }
  turns.end("a");
  await vi.advanceTimersByTimeAsync(0);
  expect(order).toEqual(["first"]);
  turns.end("a");
  await vi.advanceTimersByTimeAsync(0);
  expect(order).toEqual(["first", "second"]);
  expect(turns.waitingCount).toBe(0);
});

describe("a transaction has no turn", () => {
  test("when it has waited too long, and leaves its place to another one", async () => {
    await begin("a", CONNECTIONS / 2);
    const late = turns.begin("a", stays);
    await vi.advanceTimersByTimeAsync(WAIT_MAX_MS);
    expect(await late).toBe(false);
    turns.end("a");
    expect(await turns.begin("a", stays)).toBe(true);
  });

  test("when its client has left", async () => {
    await begin("a", CONNECTIONS / 2);
    expect(await turns.begin("a", Promise.resolve())).toBe(false);
    expect(turns.waitingCount).toBe(0);
  });

  test("when half of all places are taken by its caller, and that of another one waits", async () => {
    await begin("a", CONNECTIONS / 2 + SESSIONS_WAITING_MAX / 2);
    expect(await turns.begin("a", stays)).toBe(false);
    expect(await begin("b", CONNECTIONS)).toBeGreaterThan(0);
    expect(turns.waitingCount).toBeGreaterThan(SESSIONS_WAITING_MAX / 2);
  });
});

test("the server's own work needs no turn", async () => {
  await begin("a", 2 * CONNECTIONS);
  expect(await begin(undefined, 2 * CONNECTIONS)).toBe(2 * CONNECTIONS);
  turns.end(undefined);
});

test.each(["fd00:1:2:3::/64", crypto.randomUUID(), undefined])(
  "the connection's name says that the caller is %s",
  (caller) => {
    expect(parseApplicationName(formatApplicationName(caller))).toBe(caller);
  },
);

test.each(["", "psql", "@neondatabase/serverless x"])("the name %j says no caller", (name) => {
  expect(parseApplicationName(name)).toBeUndefined();
});
