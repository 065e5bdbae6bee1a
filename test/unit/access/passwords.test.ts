import { beforeEach, describe, expect, test } from "vitest";
import { hashSecret, verifySecret } from "../../../access/argon2.ts";
import type { PasswordVerdict } from "../../../access/judge.ts";
import {
  credentialsOf,
  PasswordGate,
  PASSWORD_CHECK_GONE_MS,
  PASSWORD_CHECK_INTERVAL_MS,
  PASSWORD_CHECK_POLL_MS,
  PASSWORD_CHECKS_MAX_OF_TUNNEL,
  WRONG_PASSWORD_BURST,
  WRONG_PASSWORD_REFILL_MS,
} from "../../../access/passwords.ts";

const AUTH = { username: "ann", passwordHash: "hash of right" };
const OTHER = { username: "ann", passwordHash: "hash of else" };

/** A clock that only `until` moves. */
let nowMs: number;
let waiting: (() => void)[];
/** When each hash was made. */
let hashedAtMs: number[];
let gate: PasswordGate;
/** While it is set, whoever waits never looks again. */
let leave: (() => void) | undefined;

beforeEach(() => {
  nowMs = 1_000_000;
  waiting = [];
  hashedAtMs = [];
  leave = undefined;
  gate = new PasswordGate({
    verify: (hash, password) => {
      hashedAtMs.push(nowMs);
      return Promise.resolve(hash === `hash of ${password}`);
    },
    now: () => nowMs,
    wait: () => new Promise((resolve) => (leave ? leave() : waiting.push(resolve))),
  });
});

const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;
const show = (password: string, { address = "192.0.2.1", auth = AUTH, username = "ann" } = {}) =>
  gate.check(auth, { authorization: basic(`${username}:${password}`), address });

/** Lets time pass, while somebody waits for that, until it is settled. */
async function until<Result>(result: Promise<Result>): Promise<Result> {
  let isOver = false;
  void result.finally(() => (isOver = true));
  while (!isOver) {
    await new Promise((resolve) => setImmediate(resolve));
    if (waiting.length > 0) nowMs += PASSWORD_CHECK_POLL_MS;
    for (const resume of waiting.splice(0)) resume();
  }
  return result;
}

const right = (verdicts: PasswordVerdict[]) => verdicts.filter((verdict) => verdict === "right");

describe("a right password", () => {
  test("costs one hash, however often and however many at once show it", async () => {
    const verdicts = await until(Promise.all(Array.from({ length: 200 }, () => show("right"))));
    expect(right(verdicts)).toHaveLength(200);
    expect(await show("right")).toBe("right");
    expect(hashedAtMs).toHaveLength(1);
  });

  test("is none when the tunnel has another, the name is another, or it is for another tunnel", async () => {
    await until(show("right"));
    expect(await until(show("right", { auth: { ...AUTH, passwordHash: "hash of new" } }))).toBe(
      "wrong",
    );
    expect(await until(show("right", { username: "bob" }))).toBe("wrong");
    expect(await until(show("right", { auth: OTHER }))).toBe("wrong");
  });

  test("takes nothing of what its address has for wrong ones", async () => {
    for (let n = 0; n < 3 * WRONG_PASSWORD_BURST; n++) {
      const auth = { ...AUTH, passwordHash: `hash of p${n}` };
      expect(await until(show(`p${n}`, { auth }))).toBe("right");
    }
    const auth = { username: "ann", passwordHash: "hash of right" };
    expect(await until(show("right", { auth }))).toBe("right");
  });
});

describe("wrong passwords", () => {
  test("are so many from one address, one each while the time passes, and none while it waits", async () => {
    const guesses = (from: number, count: number) =>
      until(Promise.all(Array.from({ length: count }, (_, n) => show(`guess ${from + n}`))));
    const verdicts = await guesses(0, 50);
    expect(verdicts.filter((verdict) => verdict === "wrong")).toHaveLength(WRONG_PASSWORD_BURST);
    expect(verdicts.at(-1)).toEqual({ tooManyWrongForMs: expect.any(Number) });
    expect(hashedAtMs).toHaveLength(WRONG_PASSWORD_BURST);
    nowMs += WRONG_PASSWORD_REFILL_MS;
    expect((await guesses(100, 5)).filter((verdict) => verdict === "wrong")).toHaveLength(1);
  });

  test("of an IPv6 subscriber count together; those of other addresses do not", async () => {
    const from = (address: string, n: number) => until(show(`guess ${n}`, { address }));
    for (let n = 0; n < WRONG_PASSWORD_BURST; n++) await from(`2001:db8::${n}`, n);
    expect(await from("2001:db8::ffff", 90)).toHaveProperty("tooManyWrongForMs");
    expect(await from("2001:db8:0:1::1", 91)).toBe("wrong");
  });

  test("do not keep the right one out, which is known, from the same address", async () => {
    await until(show("right"));
    await until(Promise.all(Array.from({ length: 50 }, (_, n) => show(`guess ${n}`))));
    expect(await show("right")).toBe("right");
  });

  test("that are the same one cost one hash and one guess", async () => {
    const verdicts = await until(Promise.all(Array.from({ length: 50 }, () => show("old one"))));
    expect(verdicts).toEqual(Array(50).fill("wrong"));
    expect(hashedAtMs).toHaveLength(1);
    for (let n = 1; n < WRONG_PASSWORD_BURST; n++) expect(await until(show(`g${n}`))).toBe("wrong");
  });

  test("from everywhere at once leave the isolate its time, and other tunnels their turn", async () => {
    const flood = Array.from({ length: 500 }, (_, n) =>
      show(`guess ${n}`, { address: `198.51.100.${n % 250}` }),
    );
    const newcomer = show("else", { auth: OTHER });
    expect(await until(newcomer)).toBe("right");
    const verdicts = await until(Promise.all(flood));
    const hashed = verdicts.filter((verdict) => verdict === "wrong");
    expect(hashed.length).toBeGreaterThanOrEqual(PASSWORD_CHECKS_MAX_OF_TUNNEL);
    expect(hashed.length).toBeLessThan(2 * PASSWORD_CHECKS_MAX_OF_TUNNEL);
    expect(
      verdicts.filter((verdict) => typeof verdict === "object" && "busyForMs" in verdict).length,
    ).toBeGreaterThan(400);
    const gaps = hashedAtMs.slice(1).map((at, n) => at - hashedAtMs[n]!);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(PASSWORD_CHECK_INTERVAL_MS);
  });
});

test("a visitor who leaves while waiting keeps nobody else waiting", async () => {
  await until(show("else"));
  // The platform drops what a request that is over waits for.
  await new Promise<void>((resolve) => {
    leave = resolve;
    void show("right");
  });
  leave = undefined;
  const startedAtMs = nowMs;
  expect(await until(show("right"))).toBe("right");
  expect(nowMs - startedAtMs).toBeLessThan(2 * PASSWORD_CHECK_GONE_MS);
});

describe("credentials", () => {
  test.each([
    ["as RFC 7617 has them", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin", "open sesame"],
    ["in UTF-8", "Basic dGVzdDoxMjPCow==", "test", "123\u00a3"],
    ["with a scheme in lower case", "basic YTpi", "a", "b"],
    ["with colons in the password", basic("a:b:c"), "a", "b:c"],
    ["with an empty password", basic("a:"), "a", ""],
  ])("are read %s", (_, line, username, password) => {
    expect(credentialsOf(line)).toEqual({ username, password });
  });

  test.each([
    ["another scheme", "Bearer YTpi"],
    ["no base64", "Basic a:b"],
    ["a broken one", "Basic YTpiY"],
    ["no colon", basic("ab")],
    ["two lines that were joined", "Basic YTpi, Basic YTpj"],
    ["a NUL, at which a hash would end", basic("ann:right\0guess")],
    ["more than is hashed", basic(`ann:${"x".repeat(1_025)}`)],
    ["a whole page", basic(`ann:${"x".repeat(10_000)}`)],
    ["nothing", ""],
  ])("are not %s", (_, line) => {
    expect(credentialsOf(line)).toBeNull();
  });

  test("of no kind cost nothing", async () => {
    for (const authorization of [null, "", "Bearer x", "Basic"]) {
      expect(await gate.check(AUTH, { authorization, address: "" })).toBe("wrong");
    }
    expect(hashedAtMs).toEqual([]);
  });
});

test("a password is the same however its letters are composed", () => {
  const hash = hashSecret("caf\u00e9 sesame");
  expect(verifySecret(hash, "cafe\u0301 sesame")).toBe(true);
  expect(verifySecret(hash, "cafe sesame")).toBe(false);
});
