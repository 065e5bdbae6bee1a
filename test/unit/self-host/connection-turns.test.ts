/** The turns of queries and transactions for the gateway's connections. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { formatApplicationName, parseApplicationName } from "../../../protocol/application-name.ts";
import { ConnectionTurns } from "../../../self-host/gateway/connection-turns.ts";

const CONNECTIONS = 10;
const WAITING_MAX = 1_000;
const WAIT_MAX_MS = 10_000;
const stays = new Promise<void>(() => undefined);

let turns: ConnectionTurns;
beforeEach(() => {
  vi.useFakeTimers();
  turns = new ConnectionTurns({
    connections: CONNECTIONS,
    waitingMax: WAITING_MAX,
    waitMaxMs: WAIT_MAX_MS,
  });
});
afterEach(() => {
  vi.useRealTimers();
});

/** @returns how many of them have their turn at once. */
async function begin(caller: string | undefined, count: number): Promise<number> {
  let begun = 0;
  for (let at = 0; at < count; at += 1) {
    void turns.begin(caller, stays).then((outcome) => (begun += Number(outcome === "turn")));
  }
  await vi.advanceTimersByTimeAsync(0);
  return begun;
}

test("one caller gets half of the connections, and others get theirs at once", async () => {
  expect(await begin("a", 100)).toBe(CONNECTIONS / 2);
  expect(await begin("b", 1)).toBe(1);
  expect(turns.waitingCount).toBe(95);
});

test("an end gives the connection to the first of a caller, in order of arrival", async () => {
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

test("callers take turns when each holds one connection, however many wait for one of them", async () => {
  for (let at = 1; at < CONNECTIONS; at += 1) await begin(`caller ${at}`, 1);
  const order: string[] = [];
  for (const caller of ["caller 1", "caller 1", "late"]) {
    void turns.begin(caller, stays).then(() => order.push(caller));
  }
  turns.end("caller 1");
  turns.end("caller 1");
  await vi.advanceTimersByTimeAsync(0);
  expect(order).toEqual(["caller 1", "late"]);
});

describe("there is no turn", () => {
  test("after too long a wait, which leaves the place to another one", async () => {
    await begin("a", CONNECTIONS / 2);
    const late = turns.begin("a", stays);
    await vi.advanceTimersByTimeAsync(WAIT_MAX_MS);
    expect(await late).toBe("too_late");
    turns.end("a");
    expect(await turns.begin("a", stays)).toBe("turn");
  });

  test("for a client that has left", async () => {
    await begin("a", CONNECTIONS / 2);
    expect(await turns.begin("a", Promise.resolve())).toBe("disconnected");
    expect(turns.waitingCount).toBe(0);
  });

  test("for a caller that has taken half of all places, and another one waits", async () => {
    await begin("a", CONNECTIONS / 2 + WAITING_MAX / 2);
    expect(await turns.begin("a", stays)).toBe("too_many");
    expect(await begin("b", CONNECTIONS)).toBeGreaterThan(0);
    expect(turns.waitingCount).toBeGreaterThan(WAITING_MAX / 2);
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
