import { beforeEach, describe, expect, test } from "vitest";
import { deriveHash, verifySecret } from "../../../../access/authenticators/argon2.ts";
import {
  PASSWORD_HASH_COST,
  formatPasswordHash,
} from "../../../../access/authenticators/password-hash.ts";
import { toUtf8 } from "../../../../shared/bytes.ts";
import { HOUR_MS } from "../../../../shared/time.ts";
import type { PasswordVerdict } from "../../../../access/access-request.ts";
import {
  parseBasicCredentials,
  PasswordAuthenticator,
  PASSWORD_CHECK_ABANDONED_MS,
  PASSWORD_CHECK_INTERVAL_MS,
  PASSWORD_CHECK_POLL_MS,
  PASSWORD_CHECKS_MAX_PER_SOURCE,
  PASSWORD_CHECKS_MAX_PER_TUNNEL,
  WRONG_PASSWORD_BURST,
  WRONG_PASSWORD_REFILL_MS,
} from "../../../../access/authenticators/passwords.ts";

const AUTH = { username: "ann", passwordHash: "hash of right" };
/** It has 1,024 bytes. */
const LONGEST_PASSWORD = "\u00e9".repeat(512);
const OTHER = { username: "ann", passwordHash: "hash of else" };

/** A clock that only `settle` advances. */
let nowMs: number;
let waiting: (() => void)[];
/** When each hash was computed. */
let hashedAtMs: number[];
let authenticator: PasswordAuthenticator;
/** While it is set, waiting requests are abandoned: they never poll again. */
let abandon: (() => void) | undefined;

beforeEach(() => {
  nowMs = 1_000_000;
  waiting = [];
  hashedAtMs = [];
  abandon = undefined;
  authenticator = new PasswordAuthenticator({
    verify: (hash, password) => {
      hashedAtMs.push(nowMs);
      return Promise.resolve(hash === `hash of ${password}`);
    },
    now: () => nowMs,
    wait: () => new Promise((resolve) => (abandon ? abandon() : waiting.push(resolve))),
  });
});

const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;
const send = (password: string, { address = "192.0.2.1", auth = AUTH, username = "ann" } = {}) =>
  authenticator.check(auth, { authorization: basic(`${username}:${password}`), address });

/** Advances the clock while requests wait, until the result is settled. */
async function settle<Result>(result: Promise<Result>): Promise<Result> {
  let isSettled = false;
  void result.finally(() => (isSettled = true));
  while (!isSettled) {
    await new Promise((resolve) => setImmediate(resolve));
    if (waiting.length > 0) nowMs += PASSWORD_CHECK_POLL_MS;
    for (const resume of waiting.splice(0)) resume();
  }
  return result;
}

/** Waits, while the clock stands still, until each request has a verdict or waits for its turn. */
async function untilArrived(requests: Promise<unknown>[]): Promise<void> {
  let settled = 0;
  for (const request of requests) void request.finally(() => (settled += 1));
  while (settled + waiting.length < requests.length) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const countCorrect = (verdicts: PasswordVerdict[]) =>
  verdicts.filter((verdict) => verdict === "correct").length;

describe("a correct password", () => {
  test("costs one hash, however many requests send it, one after the other or at once", async () => {
    const verdicts = await settle(Promise.all(Array.from({ length: 200 }, () => send("right"))));
    expect(countCorrect(verdicts)).toBe(200);
    expect(await send("right")).toBe("correct");
    expect(hashedAtMs).toHaveLength(1);
  });

  test("is wrong after the tunnel's password has changed, with another username, and for another tunnel", async () => {
    await settle(send("right"));
    expect(await settle(send("right", { auth: { ...AUTH, passwordHash: "hash of new" } }))).toBe(
      "wrong",
    );
    expect(await settle(send("right", { username: "bob" }))).toBe("wrong");
    expect(await settle(send("right", { auth: OTHER }))).toBe("wrong");
  });

  test("does not count against its address's limit of wrong passwords", async () => {
    for (let n = 0; n < 3 * WRONG_PASSWORD_BURST; n++) {
      const auth = { ...AUTH, passwordHash: `hash of p${n}` };
      expect(await settle(send(`p${n}`, { auth }))).toBe("correct");
    }
    const auth = { username: "ann", passwordHash: "hash of right" };
    expect(await settle(send("right", { auth }))).toBe("correct");
  });
});

describe("wrong passwords", () => {
  test("from one address are limited to a burst, and then to one for each interval", async () => {
    const guesses = (from: number, count: number) =>
      settle(Promise.all(Array.from({ length: count }, (_, n) => send(`guess ${from + n}`))));
    const verdicts = await guesses(0, 50);
    expect(verdicts.filter((verdict) => verdict === "wrong")).toHaveLength(WRONG_PASSWORD_BURST);
    expect(verdicts.at(-1)).toEqual({ tooManyWrongForMs: expect.any(Number) });
    expect(hashedAtMs).toHaveLength(WRONG_PASSWORD_BURST);
    nowMs += WRONG_PASSWORD_REFILL_MS;
    expect((await guesses(100, 5)).filter((verdict) => verdict === "wrong")).toHaveLength(1);
  });

  test("from one IPv6 subscriber count together; those from other subscribers count separately", async () => {
    const from = (address: string, n: number) => settle(send(`guess ${n}`, { address }));
    for (let n = 0; n < WRONG_PASSWORD_BURST; n++) await from(`2001:db8::${n}`, n);
    expect(await from("2001:db8::ffff", 90)).toHaveProperty("tooManyWrongForMs");
    expect(await from("2001:db8:0:1::1", 91)).toBe("wrong");
  });

  test("do not block a cached correct password from the same address", async () => {
    await settle(send("right"));
    await settle(Promise.all(Array.from({ length: 50 }, (_, n) => send(`guess ${n}`))));
    expect(await send("right")).toBe("correct");
  });

  test("that are equal cost one hash and count as one guess", async () => {
    const verdicts = await settle(Promise.all(Array.from({ length: 50 }, () => send("old one"))));
    expect(verdicts).toEqual(Array(50).fill("wrong"));
    expect(hashedAtMs).toHaveLength(1);
    for (let n = 1; n < WRONG_PASSWORD_BURST; n++)
      expect(await settle(send(`g${n}`))).toBe("wrong");
  });

  test("from one address for many tunnels take a part of the queue, so that there is room for those of other addresses", async () => {
    const flood = Array.from({ length: 100 }, (_, n) =>
      send(`guess ${n}`, { auth: { username: "ann", passwordHash: `hash of tunnel ${n}` } }),
    );
    const other = send("right", { address: "198.51.100.1" });
    await untilArrived([...flood, other]);
    expect(await settle(other)).toBe("correct");
    const verdicts = await settle(Promise.all(flood));
    const hashed = verdicts.filter((verdict) => verdict === "wrong");
    expect(hashed.length).toBeGreaterThanOrEqual(PASSWORD_CHECKS_MAX_PER_SOURCE);
    expect(hashed.length).toBeLessThan(2 * PASSWORD_CHECKS_MAX_PER_SOURCE);
  });

  test("from many addresses at once leave time for other requests, and for passwords of other tunnels", async () => {
    const flood = Array.from({ length: 500 }, (_, n) =>
      send(`guess ${n}`, { address: `198.51.100.${n % 250}` }),
    );
    const other = send("else", { auth: OTHER });
    await untilArrived([...flood, other]);
    expect(await settle(other)).toBe("correct");
    const verdicts = await settle(Promise.all(flood));
    const hashed = verdicts.filter((verdict) => verdict === "wrong");
    expect(hashed.length).toBeGreaterThanOrEqual(PASSWORD_CHECKS_MAX_PER_TUNNEL);
    expect(hashed.length).toBeLessThan(2 * PASSWORD_CHECKS_MAX_PER_TUNNEL);
    expect(
      verdicts.filter((verdict) => typeof verdict === "object" && "busyForMs" in verdict).length,
    ).toBeGreaterThan(400);
    const gaps = hashedAtMs.slice(1).map((at, n) => at - hashedAtMs[n]!);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(PASSWORD_CHECK_INTERVAL_MS);
  });
});

test("a request that is canceled while it waits does not block other requests", async () => {
  await settle(send("else"));
  // The platform drops the promises that a canceled request waits for.
  await new Promise<void>((resolve) => {
    abandon = resolve;
    void send("right");
  });
  abandon = undefined;
  const startedAtMs = nowMs;
  expect(await settle(send("right"))).toBe("correct");
  expect(nowMs - startedAtMs).toBeLessThan(2 * PASSWORD_CHECK_ABANDONED_MS);
});

test("a password is checked as soon when the clock is set back", async () => {
  await settle(send("else"));
  nowMs -= HOUR_MS;
  const startedAtMs = nowMs;
  expect(await settle(send("right"))).toBe("correct");
  expect(nowMs - startedAtMs).toBeLessThan(2 * PASSWORD_CHECK_INTERVAL_MS);
});

describe("credentials", () => {
  test.each([
    [
      "as in the example of RFC 7617",
      "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
      "Aladdin",
      "open sesame",
    ],
    ["in UTF-8", "Basic dGVzdDoxMjPCow==", "test", "123\u00a3"],
    ["with a scheme in lower case", "basic YTpi", "a", "b"],
    ["with colons in the password", basic("a:b:c"), "a", "b:c"],
    ["with an empty password", basic("a:"), "a", ""],
    ["with the longest password", basic(`é:${LONGEST_PASSWORD}`), "é", LONGEST_PASSWORD],
    [
      "with the longest password in another form of Unicode",
      basic(`ann:${LONGEST_PASSWORD.normalize("NFD")}`),
      "ann",
      LONGEST_PASSWORD.normalize("NFD"),
    ],
  ])("are parsed %s", (_, line, username, password) => {
    expect(parseBasicCredentials(line)).toEqual({ username, password });
  });

  test.each([
    ["another scheme", "Bearer YTpi"],
    ["text that is not base64", "Basic a:b"],
    ["truncated base64", "Basic YTpiY"],
    ["text without a colon", basic("ab")],
    ["two headers that were joined", "Basic YTpi, Basic YTpj"],
    ["a password with a NUL, where hashing would stop", basic("ann:right\0guess")],
    ["a password that is too long to hash", basic(`é:${LONGEST_PASSWORD}x`)],
    ["a header that is too long", basic(`ann:${"x".repeat(10_000)}`)],
    ["an empty header", ""],
  ])("are not %s", (_, line) => {
    expect(parseBasicCredentials(line)).toBeNull();
  });

  test("that are absent or malformed cost no hash", async () => {
    for (const authorization of [null, "", "Bearer x", "Basic"]) {
      expect(await authenticator.check(AUTH, { authorization, address: "" })).toBe("wrong");
    }
    expect(hashedAtMs).toEqual([]);
  });
});

test.each([
  ["the same text", "caf\u00e9 sesame", true],
  ["its decomposed form", "cafe\u0301 sesame", true],
  ["another last letter", "caf\u00e9 sesamx", false],
  ["another text", "cafe sesame", false],
])("the hash of a password with an accent matches %s: %s", (_, typed, isEqual) => {
  const salt = new Uint8Array(16).fill(7);
  const formatHash = (secret: Uint8Array) =>
    formatPasswordHash({
      salt,
      derived: deriveHash(secret, salt, PASSWORD_HASH_COST),
      cost: PASSWORD_HASH_COST,
    });
  const bytes = toUtf8("caf\u00e9 sesame");
  expect(verifySecret(formatHash(bytes), typed)).toBe(isEqual);
});

test("a hash that an earlier version made of too few bytes still matches its password", () => {
  const salt = new Uint8Array(16).fill(7);
  const password = "caf\u00e9 sesame";
  const hashed = toUtf8(password).subarray(0, password.length);
  const derived = deriveHash(hashed, salt, PASSWORD_HASH_COST);
  expect(
    verifySecret(formatPasswordHash({ salt, derived, cost: PASSWORD_HASH_COST }), password),
  ).toBe(true);
});
