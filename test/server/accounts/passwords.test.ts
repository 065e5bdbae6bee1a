import { createHash } from "node:crypto";
import { request } from "node:http";
import PostalMime from "postal-mime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PASSWORD_RESETS_MAX } from "../../../workers/limits.ts";
import type { PersonalEvent } from "../../../protocol/schemas/organizations/audit.ts";
import {
  createCaller,
  newEmail,
  PASSWORD,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

const NEW_PASSWORD = "a wholly different sentence";
const forgot = (email: string) => api.anonymous.post("/auth/forgot", { email });
const reset = (token: string, password = NEW_PASSWORD) =>
  api.anonymous.post<{ error?: string; fields?: object }>("/auth/reset", {
    token,
    new_password: password,
  });
const logIn = (email: string, password: string) =>
  api.anonymous.post("/auth/login", { email, password });
const readMails = async (email: string) =>
  Promise.all((await api.readMailsTo(email)).map((mail) => PostalMime.parse(mail)));
const readMailedTokens = async (email: string) =>
  (await readMails(email)).flatMap(({ text }) => /\/reset#token=([\w-]+)$/m.exec(text!)?.[1] ?? []);

/** Requests a reset. @returns the token of its email. */
async function requestToken(email: string): Promise<string> {
  const before = (await readMailedTokens(email)).length;
  expect(await forgot(email)).toMatchObject({ status: 202, body: { status: "reset_requested" } });
  return waitUntil(async () => (await readMailedTokens(email))[before]);
}

describe("a reset", () => {
  test("sets the password, ends every session at once, and sends an email", async () => {
    const person = await api.owner();
    const otherSession = await api.logIn(person.email, PASSWORD);
    const token = await requestToken(person.email);
    expect(await reset(token)).toMatchObject({ status: 200, body: { status: "password_reset" } });

    for (const { accessToken, cookie } of [person, otherSession]) {
      const caller = createCaller(api.server, { authorization: `Bearer ${accessToken}`, cookie });
      expect((await caller.get("/auth/me")).status).toBe(401);
      expect((await caller.post("/auth/refresh")).status).toBe(401);
    }
    expect((await logIn(person.email, PASSWORD)).status).toBe(401);
    expect((await logIn(person.email, NEW_PASSWORD)).status).toBe(200);
    await waitUntil(async () =>
      (await readMails(person.email)).some(({ subject }) => subject?.includes("was changed")),
    );
  });

  test("is in the audit log of the account: the request, the reset, each ended session", async () => {
    const { email } = await api.owner();
    await reset(await requestToken(email));
    const person = await api.logIn(email, NEW_PASSWORD);
    const { body } = await person.get<PersonalEvent[]>("/me/events");
    expect(
      body
        .map(({ action }) => action)
        .slice(0, 4)
        .sort(),
    ).toEqual(["password_reset", "password_reset_requested", "session_created", "session_revoked"]);
  });

  test("happens once for a token, also with concurrent requests", async () => {
    const { email } = await api.owner();
    const token = await requestToken(email);
    const passwords = Array.from({ length: 6 }, (_, i) => `${NEW_PASSWORD} ${i}`);
    const replies = await Promise.all(passwords.map((password) => reset(token, password)));
    const accepted = passwords.filter((_, i) => replies[i]!.status === 200);
    expect(accepted).toHaveLength(1);
    expect((await logIn(email, accepted[0]!)).status).toBe(200);
    const refused = replies.filter(({ status }) => status !== 200);
    expect(new Set(refused.map(({ body }) => body.error))).toEqual(new Set(["invalid_token"]));
  });

  test("voids every other token of the account, also concurrent ones", async () => {
    const { email } = await api.owner();
    const tokens = [
      await requestToken(email),
      await requestToken(email),
      await requestToken(email),
    ];
    const replies = await Promise.all(
      Array.from({ length: 6 }, (_, i) => reset(tokens[i % tokens.length]!)),
    );
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200, 400]));
  });

  test("ends sessions that were opened with the old password in the meantime", async () => {
    const { email, userId } = await api.owner();
    const token = await requestToken(email);
    const [{ status }] = await Promise.all([
      reset(token),
      ...Array.from({ length: 6 }, () => logIn(email, PASSWORD)),
    ]);
    expect(status).toBe(200);
    const openSessions = await api.sql(
      "select 1 from sessions where user_id = $1 and revoked_at is null",
      [userId],
    );
    expect(openSessions).toEqual([]);
  });

  test("sets a password for an account without one", async () => {
    const { email, userId } = await api.owner();
    await api.sql("update users set password_hash = null where id = $1", [userId]);
    expect((await logIn(email, PASSWORD)).status).toBe(401);
    await reset(await requestToken(email));
    expect((await logIn(email, NEW_PASSWORD)).status).toBe(200);
  });

  test("does not skip the second factor, and ends pending challenges", async () => {
    const { email, userId } = await api.owner();
    const token = await requestToken(email);
    await api.sql("update users set mfa_secret = 'encrypted' where id = $1", [userId]);
    await logIn(email, PASSWORD);
    await reset(token);
    const open = await api.sql(
      "select 1 from mfa_challenges where user_id = $1 and expires_at > now()",
      [userId],
    );
    expect(open).toEqual([]);
    expect((await logIn(email, NEW_PASSWORD)).body).toMatchObject({ mfa_required: true });
  });
});

describe("a reset token", () => {
  test("is refused with the same response when it is unknown, used or older than an hour", async () => {
    const { email, userId } = await api.owner();
    const spent = await requestToken(email);
    await reset(spent);
    const expired = await requestToken(email);
    const [row] = await api.sql<{ good_for: string }>(
      "select extract(epoch from expires_at - created_at)::integer as good_for from password_resets where token_hash = $1",
      [createHash("sha256").update(expired).digest("hex")],
    );
    expect(row!.good_for).toBe(3600);
    await api.sql("update password_resets set expires_at = now() where user_id = $1", [userId]);
    for (const token of [spent, expired, "x".repeat(43), "", `${expired}=`]) {
      const { status, body } = await reset(token);
      expect([status, body]).toEqual([
        400,
        {
          error: "invalid_token",
          message: "The token is not valid, was already used, or has expired. Request a new one.",
        },
      ]);
    }
  });

  test("is not used up by an invalid password", async () => {
    const { email } = await api.owner();
    const token = await requestToken(email);
    for (const weak of ["eleven char", email, "é".repeat(513)]) {
      expect(await reset(token, weak)).toMatchObject({
        status: 400,
        body: { error: "invalid_request", fields: [{ path: "new_password" }] },
      });
    }
    expect((await reset(token)).status).toBe(200);
  });

  test("has 256 bits, is stored as a hash only, and is not in the log", async () => {
    const { email } = await api.owner();
    const token = await requestToken(email);
    expect(Buffer.from(token, "base64url")).toHaveLength(32);
    const rows = await api.sql("select * from password_resets");
    expect(JSON.stringify(rows)).not.toContain(token);
    expect(JSON.stringify(rows)).toContain(createHash("sha256").update(token).digest("hex"));
    expect(JSON.stringify(await api.sql("select * from outbox"))).not.toContain(token);
    await reset(token);
    expect(api.server.output).not.toContain(token);
  });

  test("exists at most three times for an account, also with concurrent requests", async () => {
    const { email, userId } = await api.owner();
    const replies = await Promise.all(Array.from({ length: 20 }, () => forgot(email)));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([202]));
    await waitUntil(async () => (await readMailedTokens(email)).length === PASSWORD_RESETS_MAX);
    const rows = await api.sql("select 1 from password_resets where user_id = $1", [userId]);
    expect(rows).toHaveLength(PASSWORD_RESETS_MAX);
  });

  test("is not sent to an address without a verified account", async () => {
    const [unknown, unconfirmed] = [newEmail(), newEmail()];
    await api.anonymous.post("/auth/signup", { email: unconfirmed, password: PASSWORD });
    await api.getMailedCode(unconfirmed);
    await Promise.all([forgot(unknown), forgot(unconfirmed)]);
    // A later request has got its email now, so the earlier requests would have got theirs.
    await requestToken((await api.owner()).email);
    expect(await api.readMailsTo(unknown)).toEqual([]);
    expect(await api.readMailsTo(unconfirmed)).toHaveLength(1);
  });
});

describe("the reset email", () => {
  test("links to the service's own page, whatever host the request names", async () => {
    const own = `http://localhost:${api.server.port}`;
    const requests: Record<string, string>[] = [
      { host: "api.localhost" },
      { host: `API.localhost.:${api.server.port}` },
      { "x-forwarded-host": "evil.test", "x-forwarded-proto": "https" },
      { forwarded: "host=evil.test;proto=https", "x-original-host": "evil.test" },
      { origin: "https://evil.test", referer: "https://evil.test/reset" },
    ];
    for (const headers of requests) {
      const person = await api.owner();
      expect(await requestResetAs(person, headers)).toBe(202);
      await waitUntil(async () => (await readMailedTokens(person.email))[0]);
      const { text, html } = (await readMails(person.email)).at(-1)!;
      const links = `${text}${html}`.match(/https?:\/\/[^\s"<]+/g)!;
      expect(new Set(links.map((link) => new URL(link).origin))).toEqual(new Set([own]));
    }
    expect(await requestResetAs(await api.owner(), { host: "evil.test" })).toBe(404);
  });

  function requestResetAs({ email }: Person, headers: Record<string, string>): Promise<number> {
    const json = { "content-type": "application/json", ...headers };
    const options = { port: api.server.port, method: "POST", path: "/auth/forgot", headers: json };
    return new Promise((resolve, reject) => {
      request(options, (answer) => {
        answer.resume().on("end", () => resolve(answer.statusCode ?? 0));
      })
        .on("error", reject)
        .end(JSON.stringify({ email }));
    });
  }
});
