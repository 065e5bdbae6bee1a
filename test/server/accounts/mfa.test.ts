import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Me } from "../../../protocol/schemas/accounts/accounts.ts";
import type { Config } from "../../../workers/config/config.ts";
import { encrypt } from "../../../workers/identity/encryption.ts";
import {
  createCaller,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import {
  startChallenge,
  generateCode,
  confirm,
  enroll,
  enableSecondFactor,
  generateWrongCode,
} from "../../harness/browser/second-factor.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

interface StoredUser {
  mfa_secret: string | null;
  mfa_last_step: string | null;
}
async function readStoredUser({ userId }: Person): Promise<StoredUser> {
  const [row] = await api.sql<StoredUser>(
    "select mfa_secret, mfa_last_step from users where id = $1",
    [userId],
  );
  return row!;
}
const readEvents = async ({ userId }: Person, action: string) =>
  api.sql<{ metadata: object }>(
    "select metadata from audit_events where user_id = $1 and action = $2",
    [userId, action],
  );

describe("enrolling", () => {
  test("gives a secret for an authenticator and stores nothing", async () => {
    const owner = await api.owner();
    const { secret, uri } = await enroll(owner);
    expect(secret).toMatch(/^[A-Z2-7]{32}$/);
    expect(uri).toContain(`otpauth://totp/Underpass:${encodeURIComponent(owner.email)}?`);
    expect(new URL(uri).searchParams.get("secret")).toBe(secret);
    expect(await readStoredUser(owner)).toEqual({ mfa_secret: null, mfa_last_step: null });
    expect((await owner.get<Me>("/auth/me")).body.mfa_enabled).toBe(false);
  });

  test("stores the encrypted secret in a cookie that is hidden from scripts", async () => {
    const { secret, setCookie } = await enroll(await api.owner());
    expect(setCookie).toMatch(
      /^underpass-mfa=v1\.[^;]+; Max-Age=900; Path=\/; HttpOnly; SameSite=Lax$/,
    );
    expect(setCookie).not.toContain(secret);
  });

  test("is confirmed with a code, and the cookie or the secret in the body", async () => {
    for (const form of ["cookie", "body"]) {
      const owner = await api.owner();
      const { secret, cookie } = await enroll(owner);
      const body = form === "body" ? { secret_base32: secret } : {};
      const reply = await confirm(api, owner, form === "cookie" ? cookie : "", {
        code: generateCode(secret),
        ...body,
      });
      expect(reply).toMatchObject({ status: 200, body: { status: "enabled" } });
      expect(reply.body.recovery_codes).toHaveLength(10);
      expect(reply.headers.getSetCookie()[0]).toMatch(/^underpass-mfa=; Max-Age=0; Path=\/;/);
      expect((await owner.get<Me>("/auth/me")).body.mfa_enabled).toBe(true);
      expect(await readEvents(owner, "mfa_enabled")).toHaveLength(1);
    }
  });

  test("prefers the secret in the body to the one in the cookie", async () => {
    const owner = await api.owner();
    const first = await enroll(owner);
    const second = await enroll(owner);
    const body = { code: generateCode(first.secret), secret_base32: first.secret };
    expect((await confirm(api, owner, second.cookie, body)).status).toBe(200);
  });

  test("is not confirmed with a wrong or an old code", async () => {
    const owner = await api.owner();
    const { secret, cookie } = await enroll(owner);
    for (const code of [
      generateWrongCode(secret),
      generateCode(secret, -2),
      generateCode(secret, 3),
      "12345",
      "",
    ]) {
      expect(await confirm(api, owner, cookie, { code })).toMatchObject({
        status: 400,
        body: { error: "invalid_code" },
      });
    }
    expect((await readStoredUser(owner)).mfa_secret).toBeNull();
  });

  test("is not confirmed without the cookie, with a broken one, or with that of another account", async () => {
    const owner = await api.owner();
    const { secret, cookie } = await enroll(owner);
    const other = await api.owner();
    const code = generateCode(secret);
    for (const [by, presented] of [
      [owner, ""],
      [owner, "underpass-mfa=v1.invalid"],
      [owner, `${cookie.slice(0, -4)}AAAA`],
      [other, cookie],
    ] as const) {
      expect(await confirm(api, by, presented, { code })).toMatchObject({
        status: 400,
        body: { error: "invalid_code", message: expect.stringContaining("start again") },
      });
    }
  });

  test("expires after a quarter of an hour", async () => {
    const owner = await api.owner();
    const { secret } = await enroll(owner);
    const secrets = await readFile(join(api.server.dataDir, "secrets.json"), "utf8");
    type Secrets = { ENCRYPTION_KEY: string };
    const config = { ENCRYPTION_KEY: [(JSON.parse(secrets) as Secrets).ENCRYPTION_KEY] };
    const buildCookie = async (expiresAt: number) => {
      const text = JSON.stringify({ userId: owner.userId, secret, expiresAt });
      return `underpass-mfa=${await encrypt(config as Config, "mfa enrollment", text)}`;
    };
    const expired = await buildCookie(Date.now() - 1);
    expect((await confirm(api, owner, expired, { code: generateCode(secret) })).status).toBe(400);
    const valid = await buildCookie(Date.now() + 60_000);
    expect((await confirm(api, owner, valid, { code: generateCode(secret) })).status).toBe(200);
  });

  test.each(["", "GEZDGNBV", "not base32!", "1".repeat(32)])(
    "refuses the secret %j",
    async (secret) => {
      const owner = await api.owner();
      expect(
        await confirm(api, owner, "", { code: "123456", secret_base32: secret }),
      ).toMatchObject({
        status: 400,
        body: { error: "invalid_request", fields: [{ path: "secret_base32" }] },
      });
    },
  );

  test("is only possible again after turning it off", async () => {
    const owner = await api.owner();
    const { cookie, secret } = await enroll(owner);
    await enableSecondFactor(api, owner);
    const conflict = { status: 409, body: { error: "conflict" } };
    expect(await owner.post("/auth/mfa/enroll")).toMatchObject(conflict);
    expect(await confirm(api, owner, cookie, { code: generateCode(secret) })).toMatchObject(
      conflict,
    );
  });

  test("confirmed by twenty concurrent requests succeeds once, with one set of recovery codes", async () => {
    const owner = await api.owner();
    const { secret, cookie } = await enroll(owner);
    const code = generateCode(secret);
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => confirm(api, owner, cookie, { code })),
    );
    const winners = replies.filter(({ status }) => status === 200);
    expect(winners).toHaveLength(1);
    expect(replies.filter(({ status }) => status === 409)).toHaveLength(19);
    expect(
      await api.sql("select 1 from recovery_codes where user_id = $1", [owner.userId]),
    ).toHaveLength(10);
    const [recovery_code] = winners[0]!.body.recovery_codes;
    const passed = await api.anonymous.post("/auth/login/mfa", {
      challenge_token: await startChallenge(api, owner),
      recovery_code,
    });
    expect(passed.status).toBe(200);
  });

  test("notifies the address of the account when it is turned on, and when it is turned off", async () => {
    const person = await api.owner();
    await enableSecondFactor(api, person);
    const subjects = async () =>
      (await api.readMailsTo(person.email)).flatMap(
        (mail) => /^Subject: (Two-factor.*)$/m.exec(mail)?.[1] ?? [],
      );
    await waitUntil(async () => (await subjects()).length === 1);
    expect(await subjects()).toEqual([
      "Two-factor authentication for your Underpass account is on",
    ]);
    await person.post("/auth/mfa/disable", { password: person.password });
    await waitUntil(async () => (await subjects()).length === 2);
    expect((await subjects()).at(-1)).toBe(
      "Two-factor authentication for your Underpass account is off",
    );
  });

  test("ends the other sessions of the account", async () => {
    const owner = await api.owner();
    const otherSession = await api.logIn(owner.email, owner.password);
    await enableSecondFactor(api, owner);
    expect((await owner.get("/auth/me")).status).toBe(200);
    expect((await otherSession.get("/auth/me")).status).toBe(401);
    const { cookie } = otherSession;
    expect((await createCaller(api.server, { cookie }).post("/auth/refresh")).status).toBe(401);
    expect(await readEvents(owner, "session_revoked")).toHaveLength(1);
  });
});

describe("the stored second factor", () => {
  test("is an encrypted secret and hashes of the recovery codes", async () => {
    const owner = await api.owner();
    const { secret, recoveryCodes } = await enableSecondFactor(api, owner);
    const { mfa_secret: encrypted } = await readStoredUser(owner);
    expect(encrypted).toMatch(/^v1\.[\w-]+\.[\w-]+\.[\w-]+$/);
    const codes = await api.sql<{ code_hash: string; used_at: Date | null }>(
      "select code_hash, used_at from recovery_codes where user_id = $1",
      [owner.userId],
    );
    expect(codes).toHaveLength(10);
    for (const { code_hash: hash } of codes) expect(hash).toMatch(/^[0-9a-f]{64}$/);
    const texts = JSON.stringify([encrypted, codes, api.server.output]);
    for (const plain of [secret, ...recoveryCodes]) expect(texts).not.toContain(plain);
  });
});

describe("turning it off", () => {
  const disable = (person: Person, body?: object) => person.post("/auth/mfa/disable", body);

  test("accepts the password or a recovery code", async () => {
    for (const form of ["password", "recovery_code"]) {
      const owner = await api.owner();
      const { secret, recoveryCodes, spentCode } = await enableSecondFactor(api, owner);
      const { mfa_last_step: lastStep } = await readStoredUser(owner);
      const proof = form === "password" ? owner.password : recoveryCodes[0]!.toUpperCase();
      expect(await disable(owner, { [form]: proof })).toMatchObject({
        status: 200,
        body: { status: "disabled" },
      });
      expect(await readStoredUser(owner)).toEqual({ mfa_secret: null, mfa_last_step: lastStep });
      expect(
        await api.sql("select 1 from recovery_codes where user_id = $1", [owner.userId]),
      ).toEqual([]);
      expect(await readEvents(owner, "mfa_disabled")).toEqual([{ metadata: { factor: form } }]);
      const session = await api.logIn(owner.email, owner.password);
      expect((await session.get<Me>("/auth/me")).body.user.email).toBe(owner.email);

      // When the same secret is enrolled again, the code that confirmed it the first time is still spent.
      const again = (code: string) => confirm(api, owner, "", { code, secret_base32: secret });
      expect((await again(spentCode)).status).toBe(400);
      expect((await again(generateCode(secret, 1))).status).toBe(200);
    }
  });

  test("refuses wrong proofs, and says what it requires", async () => {
    const owner = await api.owner();
    const { secret } = await enableSecondFactor(api, owner);
    const stored = await readStoredUser(owner);
    for (const [body, word] of [
      [undefined, "Send the password"],
      [{}, "Send the password"],
      [{ password: "not the right password" }, "password is wrong"],
      [{ recovery_code: "aaaa-aaaa-aaaa-aaaa" }, "recovery code is wrong"],
      [{ code: generateCode(secret, 1) }, "Send the password"],
    ] as const) {
      expect(await disable(owner, body)).toMatchObject({
        status: 401,
        body: { error: "unauthorized", message: expect.stringContaining(word) },
      });
    }
    const both = { password: owner.password, recovery_code: "aaaa-aaaa-aaaa-aaaa" };
    expect(await disable(owner, both)).toMatchObject({
      status: 400,
      body: { error: "invalid_request", fields: [{ path: "recovery_code" }] },
    });
    expect(await readStoredUser(owner)).toEqual(stored);
    expect(await readEvents(owner, "mfa_failed")).toHaveLength(2);
  });

  test("fails with a conflict when it is not on", async () => {
    const owner = await api.owner();
    expect(await disable(owner, { password: owner.password })).toMatchObject({
      status: 409,
      body: { error: "conflict" },
    });
  });

  test("verifies ten wrong passwords an hour, also concurrent ones", async () => {
    const owner = await api.owner();
    await enableSecondFactor(api, owner);
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => disable(owner, { password: "not the right password" })),
    );
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([401]));
    expect(await readEvents(owner, "mfa_failed")).toHaveLength(10);
    expect((await disable(owner, { password: owner.password })).status).toBe(401);
    await api.sql(
      "update mfa_challenges set expires_at = expires_at - interval '1 hour' where user_id = $1",
      [owner.userId],
    );
    expect((await disable(owner, { password: owner.password })).status).toBe(200);
  });

  test("ends sign-ins that are waiting for the second factor", async () => {
    const owner = await api.owner();
    const { recoveryCodes, secret } = await enableSecondFactor(api, owner);
    const challenge = await startChallenge(api, owner);
    await disable(owner, { password: owner.password });
    for (const presented of [
      { recovery_code: recoveryCodes[0] },
      { code: generateCode(secret, 1) },
    ]) {
      const body = { challenge_token: challenge, ...presented };
      expect((await api.anonymous.post("/auth/login/mfa", body)).status).toBe(401);
    }
  });

  test("by twenty concurrent requests with one recovery code happens once", async () => {
    const owner = await api.owner();
    const { recoveryCodes } = await enableSecondFactor(api, owner);
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => disable(owner, { recovery_code: recoveryCodes[0] })),
    );
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(replies.filter(({ status }) => status === 409)).toHaveLength(19);
  });
});

test("behind https the cookie is Secure, and guessing is rate limited by address", async () => {
  await using slow = await startApi({ kind: "public" });
  const owner = await slow.owner();
  expect((await enroll(owner)).setCookie).toMatch(/; Secure/);
  const guess = { challenge_token: "x", code: "123456" };
  for (const [ask, expectedStatus] of [
    [() => slow.anonymous.post("/auth/login/mfa", guess), 401],
    [() => owner.post("/auth/mfa/disable", { password: "x" }), 409],
  ] as const) {
    const replies = await Promise.all(Array.from({ length: 10 }, ask));
    const statuses = replies.map(({ status }) => status);
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(5);
    for (const status of statuses) expect([expectedStatus, 429]).toContain(status);
  }
});
