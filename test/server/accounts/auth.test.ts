import { createHash } from "node:crypto";
import { argon2id } from "@noble/hashes/argon2.js";
import PostalMime from "postal-mime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fromBase64 } from "../../../shared/bytes.ts";
import type { AccountSummary, Me } from "../../../protocol/schemas/accounts/accounts.ts";
import { SIGN_UP_MAILS_HOURLY_MAX } from "../../../workers/limits.ts";
import { getEntitlements } from "../../../workers/store/billing/plans.ts";
import {
  createCaller,
  getFirstCookie,
  newEmail,
  PASSWORD,
  startApi,
  waitUntil,
  type Reply,
  type TestApi,
} from "../../harness/server/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

const signUp = (email: string, password = PASSWORD) =>
  api.anonymous.post("/auth/signup", { email, password });
const verify = (email: string, code: string) =>
  api.anonymous.post("/auth/verify-email-otp", { email, code });
const logIn = (email: string, password = PASSWORD) =>
  api.anonymous.post<AccountSummary>("/auth/login", { email, password });
const refresh = (cookie: string, headers: Record<string, string> = {}) =>
  createCaller(api.server, { cookie, ...headers }).post<{ access_token: string }>("/auth/refresh");
const wrongCode = (code: string) => String((Number(code) + 1) % 1_000_000).padStart(6, "0");

function withoutRequestId({ status, body, headers }: Reply<unknown>) {
  const comparable = [...headers].filter(([name]) => !/^(underpass-request-id|date)$/.test(name));
  return { status, body, headers: comparable };
}

const pickBodyAndStatus = ({ status, body }: Reply<unknown>) => ({ status, body });

describe("signing up", () => {
  test("sends a code by email that creates an account with its own organization", async () => {
    const email = newEmail();
    expect(await signUp(email)).toMatchObject({
      status: 201,
      body: { status: "pending_email_verification" },
    });
    const code = await api.getMailedCode(email);
    expect(await verify(email, code)).toMatchObject({ status: 200, body: { status: "verified" } });

    const { status, body } = await logIn(email);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      user: { email },
      active_org: { role: "owner", approval_status: "approved" },
      is_superadmin: false,
    });
    const projects = await api.sql("select slug, is_default from projects where org_id = $1", [
      body.active_org.id,
    ]);
    expect(projects).toEqual([{ slug: "default", is_default: true }]);
  });

  test("stores the password as Argon2id that another implementation verifies", async () => {
    const { userId } = await api.signUp();
    const [row] = await api.sql<{ password_hash: string }>(
      "select password_hash from users where id = $1",
      [userId],
    );
    const [, kind, version, cost, salt, hash] = row!.password_hash.split("$");
    expect([kind, version, cost]).toEqual(["argon2id", "v=19", "m=19456,t=2,p=1"]);
    const expected = argon2id(PASSWORD, fromBase64(salt!)!, {
      m: 19_456,
      t: 2,
      p: 1,
      dkLen: 32,
    });
    expect(fromBase64(hash!)).toEqual(new Uint8Array(expected));
  });

  test("gives the same response for an address with an account, and notifies that address", async () => {
    const { email } = await api.owner();
    const again = await signUp(email, "another good password");
    expect(withoutRequestId(again)).toEqual(withoutRequestId(await signUp(newEmail())));
    await waitUntil(async () =>
      (await api.readMailsTo(email)).some((mail) => mail.includes("You already have")),
    );
    expect((await logIn(email, "another good password")).status).toBe(401);
    expect((await logIn(email)).status).toBe(200);
  });

  test.each([
    ["an address without an @", { email: "no-at-sign", password: PASSWORD }, "email"],
    [
      "an address of 300 characters",
      { email: `${"a".repeat(300)}@example.com`, password: PASSWORD },
      "email",
    ],
    [
      "a password of 11 characters",
      { email: "a@example.com", password: "elevenchars" },
      "password",
    ],
    [
      "a password of 1,025 bytes",
      { email: "a@example.com", password: "é".repeat(513) },
      "password",
    ],
    [
      "a password that is the address",
      { email: "long.name@example.com", password: "Long.Name@example.com" },
      "password",
    ],
    [
      "a password with a NUL",
      { email: "a@example.com", password: "twelve\0chars and more" },
      "password",
    ],
  ])("refuses %s", async (_, body, field) => {
    expect(await api.anonymous.post("/auth/signup", body)).toMatchObject({
      status: 400,
      body: { error: "invalid_request", fields: [{ path: field }] },
    });
  });

  test("with twelve concurrent requests creates one account, for which only the newest code is valid", async () => {
    const email = newEmail();
    const replies = await Promise.all(Array.from({ length: 12 }, () => signUp(email)));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([201]));
    // One address receives at most ten mails an hour. Later sign-ups send none, and leave the last code valid.
    await waitUntil(async () => (await api.readMailsTo(email)).length === SIGN_UP_MAILS_HOURLY_MAX);
    const codes = (await api.readMailsTo(email)).map(
      (mail) => /^Subject: (\d{6}) /m.exec(mail)![1]!,
    );
    const events = await api.sql(
      "select action, count(*)::integer as times from audit_events join users on users.id = user_id where email = $1 group by action order by action",
      [email],
    );
    expect(events).toEqual([
      { action: "account_created", times: 1 },
      { action: "sign_up_repeated", times: 11 },
    ]);
    // The database decides which of the concurrent codes is the newest.
    const statuses = [];
    for (const code of new Set(codes)) {
      await api.sql("update email_codes set attempts = 0");
      statuses.push((await verify(email, code)).status);
    }
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
  });

  test("treats another spelling of an address as the same address", async () => {
    const email = newEmail();
    await signUp(` ${email.toUpperCase()} `);
    await verify(email, await api.getMailedCode(email));
    expect((await logIn(email.toUpperCase())).status).toBe(200);
  });

  test("sets nothing but the address and the password, whatever else is sent", async () => {
    const email = newEmail();
    const extra = {
      id: crypto.randomUUID(),
      is_superadmin: true,
      isSuperadmin: true,
      email_verified_at: new Date(0),
      emailVerifiedAt: new Date(0),
      password_hash: "x",
      role: "owner",
      org_id: crypto.randomUUID(),
      plan: "enterprise",
    };
    await api.anonymous.post("/auth/signup", { email, password: PASSWORD, ...extra });
    expect((await logIn(email)).status).toBe(401);
    await api.anonymous.post("/auth/verify-email-otp", {
      email,
      code: await api.getMailedCode(email),
      ...extra,
    });
    const body = { email, password: PASSWORD, ...extra };
    const { body: summary } = await api.anonymous.post<AccountSummary>("/auth/login", body);
    expect(summary.is_superadmin).toBe(false);
    expect([summary.user.id, summary.active_org.id]).not.toContain(extra.id);
  });

  test("accepts a password in another Unicode composition", async () => {
    const email = newEmail();
    await signUp(email, "cafe\u0301 au lait, svp");
    await verify(email, await api.getMailedCode(email));
    expect((await logIn(email, "caf\u00e9 au lait, svp")).status).toBe(200);
  });
});

describe("a code", () => {
  test("fails with the same response, whatever the reason", async () => {
    const email = newEmail();
    await signUp(email);
    const code = await api.getMailedCode(email);
    const attempts = [
      await verify(email, wrongCode(code)),
      await verify(email, "12345"),
      await verify(email, ""),
      await verify("unknown@example.com", code),
    ];
    for (const { status, body } of attempts) {
      expect({ status, body }).toEqual({
        status: 400,
        body: { error: "invalid_code", message: expect.stringContaining("Request a new one") },
      });
    }
    for (const malformed of [{ email, code: 123_456 }, {}, null, []]) {
      const reply = await api.anonymous.post("/auth/verify-email-otp", malformed);
      expect(reply).toMatchObject({ status: 400, body: { error: "invalid_code" } });
    }
  });

  test("is void after five wrong guesses, also concurrent ones", async () => {
    const email = newEmail();
    await signUp(email);
    const code = await api.getMailedCode(email);
    const guesses = Array.from({ length: 40 }, () => verify(email, wrongCode(code)));
    const replies = await Promise.all(guesses);
    const correct = await verify(email, code);
    expect(correct.status).toBe(400);
    for (const { status, body } of replies)
      expect({ status, body }).toEqual(pickBodyAndStatus(correct));
    const [{ attempts } = { attempts: 0 }] = await api.sql<{ attempts: number }>(
      "select attempts from email_codes join users on users.id = user_id where email = $1",
      [email],
    );
    expect(attempts).toBe(5);
  });

  test("allows twenty guesses an hour, however many codes are requested", async () => {
    const email = newEmail();
    await signUp(email);
    for (let codes = 0; codes < 4; codes++) {
      const code = await api.getMailedCode(email);
      for (let guess = 0; guess < 5; guess++) await verify(email, wrongCode(code));
      await api.anonymous.post("/auth/resend-verify-otp", { email });
      await waitUntil(async () => (await api.getMailedCode(email)) !== code);
    }
    const code = await api.getMailedCode(email);
    expect((await verify(email, code)).status).toBe(400);
    await api.sql(
      "update email_codes set guesses_since = now() - interval '61 minutes' where user_id = (select id from users where email = $1)",
      [email],
    );
    expect((await verify(email, code)).status).toBe(200);
  });

  test("cannot be found by continuing to guess, nor used twice", async () => {
    const email = newEmail();
    await signUp(email);
    const code = await api.getMailedCode(email);
    const replies = await Promise.all(
      Array.from({ length: 40 }, (_, i) => verify(email, i === 20 ? code : wrongCode(code))),
    );
    const confirmed = replies.filter(({ status }) => status === 200).length;
    expect(confirmed).toBe(replies[20]!.status === 200 ? 1 : 0);
    const [row] = await api.sql<{ attempts: number; consumed: boolean }>(
      "select attempts, consumed_at is not null as consumed from email_codes join users on users.id = user_id where email = $1",
      [email],
    );
    expect(row!.attempts).toBeLessThanOrEqual(5);
    expect(row!.consumed).toBe(confirmed === 1);
  });

  test("of six digits is stored as a keyed hash", async () => {
    const email = newEmail();
    await signUp(email);
    const code = await api.getMailedCode(email);
    expect(code).toMatch(/^\d{6}$/);
    const [row] = await api.sql<{ code_hash: string }>(
      "select code_hash from email_codes join users on users.id = user_id where email = $1",
      [email],
    );
    expect(row!.code_hash).toMatch(/^[0-9a-f]{64}$/);
    const unkeyed = [code, `${email} ${code}`].map((text) =>
      createHash("sha256").update(text).digest("hex"),
    );
    expect(unkeyed).not.toContain(row!.code_hash);
  });

  test("is valid once, even when it is entered concurrently", async () => {
    const email = newEmail();
    await signUp(email);
    const code = await api.getMailedCode(email);
    const replies = await Promise.all(Array.from({ length: 20 }, () => verify(email, code)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    const organizations = await api.sql(
      "select 1 from memberships join users on users.id = user_id where email = $1",
      [email],
    );
    expect(organizations).toHaveLength(1);
  });

  test("is void after another one is requested", async () => {
    const email = newEmail();
    await signUp(email);
    const first = await api.getMailedCode(email);
    expect(await api.anonymous.post("/auth/resend-verify-otp", { email })).toMatchObject({
      status: 200,
      body: { ok: true },
    });
    const second = await waitUntil(async () =>
      (await api.readMailsTo(email)).length === 2 ? api.getMailedCode(email) : null,
    );
    if (first !== second) expect((await verify(email, first)).status).toBe(400);
    expect((await verify(email, second)).status).toBe(200);
  });

  test("is valid for ten minutes, until the time that the mail says", async () => {
    const email = newEmail();
    await signUp(email);
    const code = await api.getMailedCode(email);
    const { text = "" } = await PostalMime.parse((await api.readMailsTo(email)).at(-1)!);
    const [row] = await api.sql<{ expires_at: Date }>(
      "select expires_at from email_codes where user_id = (select id from users where email = $1)",
      [email],
    );
    const mailedMs = Date.parse(/, until (.+? GMT)\./.exec(text)?.[1] ?? "");
    expect(Math.abs(row!.expires_at.getTime() - mailedMs)).toBeLessThan(60_000);
    await api.sql(
      "update email_codes set expires_at = now() where user_id = (select id from users where email = $1)",
      [email],
    );
    expect((await verify(email, code)).status).toBe(400);
  });

  test("requested for an address without a sign-up gives the same response", async () => {
    const registered = newEmail();
    await signUp(registered);
    const replies = await Promise.all(
      [registered, newEmail()].map((email) =>
        api.anonymous.post("/auth/resend-verify-otp", { email }),
      ),
    );
    expect(withoutRequestId(replies[0]!)).toEqual(withoutRequestId(replies[1]!));
  });
});

describe("logging in", () => {
  test("fails with the same response: no account, wrong password, address not verified", async () => {
    const { email } = await api.owner();
    const unconfirmed = newEmail();
    await signUp(unconfirmed);
    const [wrong, unknown, unverified] = [
      await logIn(email, "not the right password"),
      await logIn(newEmail()),
      await logIn(unconfirmed),
    ].map(withoutRequestId);
    expect(wrong).toMatchObject({ status: 401, body: { error: "unauthorized" } });
    expect(unknown).toEqual(wrong);
    expect(unverified).toEqual(wrong);
  });

  test("sets a cookie that is sent only to /auth and hidden from scripts", async () => {
    const { email } = await api.owner();
    const [cookie] = (await logIn(email)).headers.getSetCookie();
    expect(cookie).toMatch(
      /^qnt_refresh=[^;]+; Max-Age=2592000; Path=\/auth; HttpOnly; SameSite=Lax$/,
    );
  });
});

describe("the account", () => {
  test("shows who is signed in and what the plan includes", async () => {
    const owner = await api.owner();
    const { status, body } = await owner.get<Me>("/auth/me");
    expect(status).toBe(200);
    expect(body).toEqual({
      access_token: owner.accessToken,
      user: { id: owner.userId, email: owner.email },
      active_org: expect.objectContaining({ id: owner.orgId, role: "owner" }),
      is_superadmin: false,
      has_password: true,
      mfa_enabled: false,
      mfa_removable_at: null,
      entitlements: getEntitlements({ plan: "enterprise", trialEndsAt: null }, false, new Date()),
      billing_mode: "none",
    });
  });

  test("is signed out at once by logging out, with bearer and cookie", async () => {
    const owner = await api.owner();
    const reply = await owner.post("/auth/logout");
    expect(reply).toMatchObject({ status: 200, body: { ok: true } });
    expect(getFirstCookie(reply.headers)).toBe("qnt_refresh=");
    expect((await owner.get("/auth/me")).status).toBe(401);
    expect((await refresh(owner.cookie)).status).toBe(401);
  });

  test("loses access to an organization as soon as its membership ends", async () => {
    const owner = await api.owner();
    await api.sql("delete from memberships where user_id = $1", [owner.userId]);
    expect((await owner.get("/auth/me")).status).toBe(401);
  });
});
