import { beforeEach, describe, expect, test } from "vitest";
import {
  HASHES_WAITING_PER_ACCOUNT_MAX,
  HASHES_WAITING_PER_SOURCE_MAX,
  HashQueue,
  type HashClaim,
} from "../../../../workers/identity/accounts/hash-queue.ts";

let nowMs: number;
let waiting: (() => void)[];
let queue: HashQueue;
beforeEach(() => {
  nowMs = 0;
  waiting = [];
  queue = new HashQueue({
    now: () => nowMs,
    wait: () => new Promise((resolve) => waiting.push(resolve)),
  });
});

/** Lets every waiting request poll, and all that follows from that happen. */
async function pass(ms: number): Promise<void> {
  nowMs += ms;
  for (const resume of waiting.splice(0)) resume();
  await new Promise(setImmediate);
}

let claims = 0;
const newClaim = (): HashClaim => ({ source: `source ${++claims}`, account: `account ${claims}` });
const LIMITED = { pauseMs: 100, isLimited: true };

/** A hash that runs until `end` is called. */
function startHash(claim = newClaim(), limits = LIMITED) {
  const { promise, resolve: end } = Promise.withResolvers<string>();
  const state = { hasStarted: false, refusal: undefined as unknown };
  const done = queue.run(claim, limits, () => {
    state.hasStarted = true;
    return promise;
  });
  done.catch((error: unknown) => (state.refusal = error));
  return { state, done, end };
}

describe("hashes", () => {
  test("run one at a time in order of arrival, with a pause between their starts", async () => {
    const [first, second, third] = [startHash(), startHash(), startHash()];
    expect([first, second].map(({ state }) => state.hasStarted)).toEqual([true, false]);
    await pass(500);
    expect(second.state.hasStarted).toBe(false);
    first.end("first");
    expect(await first.done).toBe("first");
    await pass(10);
    expect([second, third].map(({ state }) => state.hasStarted)).toEqual([true, false]);
    second.end("second");
    await second.done;
    await pass(90);
    expect(third.state.hasStarted).toBe(false);
    await pass(10);
    expect(third.state.hasStarted).toBe(true);
  });

  test("of requests that were canceled do not block later ones", async () => {
    const running = startHash();
    const abandoned = startHash();
    waiting.length = 0;
    nowMs += 1_001;
    const next = startHash();
    running.end("");
    await running.done;
    await pass(10);
    expect([abandoned, next].map(({ state }) => state.hasStarted)).toEqual([false, true]);
  });

  test("that never end are abandoned after five seconds", async () => {
    startHash();
    const next = startHash();
    for (let at = 0; at < 10; at++) await pass(500);
    expect(next.state.hasStarted).toBe(false);
    await pass(500);
    expect(next.state.hasStarted).toBe(true);
  });

  test("of requests that were canceled take no place in the queue", () => {
    const claim = newClaim();
    for (let n = 0; n < HASHES_WAITING_PER_ACCOUNT_MAX; n++) startHash(claim);
    nowMs += 5_001;
    expect(startHash(claim).state.hasStarted).toBe(true);
  });

  test("that fail let the next one run", async () => {
    const failing = queue.run(newClaim(), LIMITED, () => Promise.reject(new Error("no gateway")));
    await expect(failing).rejects.toThrow("no gateway");
    await pass(100);
    const next = startHash();
    expect(next.state.hasStarted).toBe(true);
  });
});

describe("refused with a time to try again are", () => {
  const refusal = { code: "unavailable", details: { retryAfterSeconds: 2 } };

  test.each([
    ["a source", "source", HASHES_WAITING_PER_SOURCE_MAX],
    ["an account", "account", HASHES_WAITING_PER_ACCOUNT_MAX],
  ])("hashes for %s that has its share of the queue", async (_, key, max) => {
    const same = { ...newClaim() };
    const claim = () => ({ ...newClaim(), [key]: same[key as keyof HashClaim] });
    const accepted = Array.from({ length: max }, () => startHash(claim()));
    const refused = startHash(claim());
    const others = startHash();
    await pass(0);
    expect(accepted.map(({ state }) => state.refusal)).toEqual(accepted.map(() => undefined));
    expect(refused.state.refusal).toMatchObject(refusal);
    expect(others.state.refusal).toBeUndefined();
  });

  test("hashes of anyone when 64 wait, also without limits by source", async () => {
    const unlimited = { pauseMs: 0, isLimited: false };
    const claim = newClaim();
    const hashes = Array.from({ length: 65 }, () => startHash(claim, unlimited));
    await pass(0);
    expect(hashes.filter(({ state }) => state.refusal).length).toBe(1);
    expect(hashes.at(-1)!.state.refusal).toMatchObject(refusal);
  });
});
