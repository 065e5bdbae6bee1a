/**
 * A thief has an access token, or more. What it takes to make a lasting change of an account, and how its owner gets the
 * account back.
 */
import PostalMime from "postal-mime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Me } from "../../../protocol/schemas/accounts/accounts.ts";
import type { MintedToken } from "../../../protocol/schemas/tokens.ts";
import {
  mintToken,
  newAddress,
  newEmail,
  PASSWORD,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import {
  confirm,
  enableSecondFactor,
  enroll,
  generateCode,
  startChallenge,
} from "../../harness/browser/second-factor.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

const NEW_PASSWORD = "a wholly different sentence";

const readMailedToken = (email: string, page: string, at = 0) =>
  waitUntil(async () => {
    const mails = await api.readMailsTo(email);
    const texts = await Promise.all(
      mails.map(async (mail) => (await PostalMime.parse(mail)).text!),
    );
    const pattern = new RegExp(`${page}#token=([\\w-]+)$`, "m");
    return texts.flatMap((text) => pattern.exec(text)?.[1] ?? [])[at];
  });
const ageSessions = ({ userId }: Person) =>
  api.sql(
    "update sessions set authenticated_at = now() - interval '601 seconds' where user_id = $1",
    [userId],
  );
const listActions = async ({ userId }: Person) =>
  (
    await api.sql<{ action: string }>(
      "select action from audit_events where user_id = $1 order by created_at, id",
      [userId],
    )
  ).map(({ action }) => action);

describe("a session whose sign-in is older than ten minutes", () => {
  const refusal = { status: 401, body: { error: "reauthentication_required" } };

  test("can neither request nor confirm a second factor, with whatever secret", async () => {
    const owner = await api.owner();
    const { secret, cookie } = await enroll(owner);
    await ageSessions(owner);
    const reply = await owner.post("/auth/mfa/enroll");
    expect(reply).toMatchObject(refusal);
    expect(reply.headers.get("www-authenticate")).toContain("insufficient_user_authentication");
    const code = generateCode(secret);
    expect(await confirm(api, owner, cookie, { code })).toMatchObject(refusal);
    expect(await confirm(api, owner, "", { code, secret_base32: secret })).toMatchObject(refusal);
    expect((await owner.get<Me>("/auth/me")).body.mfa_enabled).toBe(false);
  });

  test("becomes fresh for ten minutes with the password, and no other session does", async () => {
    const owner = await api.owner();
    const other = await api.logIn(owner.email, owner.password);
    await ageSessions(owner);
    expect(await owner.post("/auth/reauthenticate", { password: owner.password })).toMatchObject({
      status: 200,
      body: { status: "reauthenticated" },
    });
    expect(await other.post("/auth/mfa/enroll")).toMatchObject(refusal);
    expect((await owner.post("/auth/mfa/enroll")).status).toBe(200);
    await ageSessions(owner);
    expect(await owner.post("/auth/mfa/enroll")).toMatchObject(refusal);
  });

  test("does not become fresh by renewing, by a wrong proof or by none", async () => {
    const owner = await api.owner();
    await ageSessions(owner);
    await owner.send("POST", "/auth/refresh", { headers: { cookie: owner.cookie } });
    for (const [proof, status] of [
      [{ password: "not the right password" }, 401],
      [{ password: "" }, 401],
      [{ code: "123456" }, 401],
      [{}, 400],
      [{ password: owner.password, code: "123456" }, 400],
    ] as const) {
      expect((await owner.post("/auth/reauthenticate", proof)).status).toBe(status);
    }
    expect(await owner.post("/auth/mfa/enroll")).toMatchObject(refusal);
  });

  test("accepts a code of the authenticator once", async () => {
    const owner = await api.owner();
    const { secret, spentCode } = await enableSecondFactor(api, owner);
    const prove = async (code: string) =>
      (await owner.post("/auth/reauthenticate", { code })).status;
    expect(await prove(spentCode)).toBe(401);
    const next = generateCode(secret, 1);
    expect(await prove(next)).toBe(200);
    expect(await prove(next)).toBe(401);
  });

  test("verifies ten wrong passwords an hour, also concurrent ones", async () => {
    const owner = await api.owner();
    const guess = (password: string) => owner.post("/auth/reauthenticate", { password });
    const replies = await Promise.all(Array.from({ length: 20 }, () => guess("not the right one")));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([401]));
    const failures = (await listActions(owner)).filter((a) => a === "reauthentication_failed");
    expect(failures).toHaveLength(10);
    expect((await guess(owner.password)).status).toBe(401);
  });

  test("of an account without a password needs another sign-in", async () => {
    const owner = await api.owner();
    await api.sql("update users set password_hash = null where id = $1", [owner.userId]);
    await ageSessions(owner);
    expect((await owner.get<Me>("/auth/me")).body.has_password).toBe(false);
    expect(await owner.post("/auth/reauthenticate", { password: "" })).toMatchObject({
      status: 401,
      body: {
        message:
          "This account has no password. Instead, sign in again, or send a code of the authenticator app.",
      },
    });
    expect(await owner.post("/auth/mfa/enroll")).toMatchObject(refusal);
  });
});

test("a password for an account without one is no wrong guess", async () => {
  const owner = await api.owner();
  const { recoveryCodes } = await enableSecondFactor(api, owner);
  await api.sql("update users set password_hash = null where id = $1", [owner.userId]);
  const message = "This account has no password. Instead, send a recovery code.";
  for (let count = 1; count <= 10; count++) {
    const proof = { password: owner.password };
    expect((await owner.post("/auth/reauthenticate", proof)).status).toBe(401);
    expect(await owner.post("/auth/mfa/disable", proof)).toMatchObject({
      status: 401,
      body: { error: "unauthorized", message },
    });
  }
  expect((await listActions(owner)).filter((action) => action.endsWith("_failed"))).toEqual([]);
  const disabled = await owner.post("/auth/mfa/disable", { recovery_code: recoveryCodes[0] });
  expect(disabled.status).toBe(200);
});

/** `123456` as ` 123 456\n`. */
const space = (code: string) => ` ${code.slice(0, 3)} ${code.slice(3)}\n`;

test("spaces in typed codes are ignored", async () => {
  const email = newEmail();
  await api.anonymous.post("/auth/signup", { email, password: PASSWORD });
  const mailed = { email, code: space(await api.getMailedCode(email)) };
  expect((await api.anonymous.post("/auth/verify-email-otp", mailed)).status).toBe(200);

  const person = await api.logIn(email, PASSWORD);
  const { secret, cookie } = await enroll(person);
  const confirmed = await confirm(api, person, cookie, { code: space(generateCode(secret)) });
  expect(confirmed.status).toBe(200);
  const proof = { code: space(generateCode(secret, 1)) };
  expect((await person.post("/auth/reauthenticate", proof)).status).toBe(200);

  // The newest code was just used. As if another half a minute had passed:
  await api.sql("update users set mfa_last_step = null where id = $1", [person.userId]);
  const challenge_token = await startChallenge(api, person);
  const factor = { challenge_token, code: space(generateCode(secret)) };
  expect((await api.anonymous.post("/auth/login/mfa", factor)).status).toBe(200);
});

test("spaces around mailed tokens are ignored", async () => {
  const owner = await api.owner();
  await enableSecondFactor(api, owner);
  const challenge_token = await startChallenge(api, owner);
  await api.anonymous.post("/auth/mfa/removal", { challenge_token });
  const removal = { token: `${await readMailedToken(owner.email, "/two-factor")} \n` };
  // The token is right, but it is too early.
  expect((await api.anonymous.post("/auth/mfa/removal/complete", removal)).status).toBe(409);
  expect((await api.anonymous.post("/auth/mfa/removal/cancel", removal)).status).toBe(200);

  await api.anonymous.post("/auth/forgot", { email: owner.email });
  const token = ` ${await readMailedToken(owner.email, "/reset")} `;
  const reset = { token, new_password: NEW_PASSWORD };
  expect((await api.anonymous.post("/auth/reset", reset)).status).toBe(200);
});

test("guesses at a password of a signed-in user are limited by address like a login", async () => {
  await using limited = await startApi({ kind: "public" });
  const owner = await limited.owner();
  const from = newAddress();
  const guesses = Array.from({ length: 8 }, () =>
    owner.send("POST", "/auth/reauthenticate", {
      headers: { "content-type": "application/json", "x-forwarded-for": from },
      body: JSON.stringify({ code: "123456" }),
    }),
  );
  const statuses = (await Promise.all(guesses)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(3);
});

describe("a password reset", () => {
  const reset = async (email: string, fields: object = {}) => {
    await api.anonymous.post("/auth/forgot", { email });
    const token = await readMailedToken(email, "/reset");
    const body = { token, new_password: NEW_PASSWORD, ...fields };
    expect((await api.anonymous.post("/auth/reset", body)).status).toBe(200);
  };
  const isRevoked = async ({ nonce }: MintedToken) => {
    const [row] = await api.sql<{ revoked: boolean }>(
      "select revoked_at is not null as revoked from tokens where nonce = $1",
      [nonce],
    );
    return row!.revoked;
  };
  const mintMaster = async (person: Person) =>
    (await person.post<MintedToken>("/tokens/master", { name: "a master key" })).body;

  test("revokes what the account's sessions minted: tokens, master keys and their children", async () => {
    const owner = await api.owner();
    const thief = await api.logIn(owner.email, owner.password);
    const [own, stolen, master] = [
      await mintToken(owner),
      await mintToken(thief),
      await mintMaster(thief),
    ];
    const child = await api.anonymous.send<MintedToken>("POST", "/projects/default/tokens", {
      headers: { authorization: `Bearer ${master.bearer}`, "content-type": "application/json" },
      body: JSON.stringify({ name: "a child" }),
    });
    const agent = await api.connectAgent(stolen.wireBytes, { port: 3000 });
    expect(agent.code).toBeUndefined();
    const closed = new Promise((resolve) => agent.socket!.on("close", resolve));
    // Ending the session before the reset saves nothing.
    await thief.post("/auth/logout");
    await reset(owner.email);
    for (const token of [own, stolen, master, child.body])
      expect(await isRevoked(token)).toBe(true);
    await closed;
  });

  test("keeps them when the user says so, also at the next reset without it", async () => {
    const owner = await api.owner();
    const token = await mintToken(owner);
    await reset(owner.email, { keep_tokens: true });
    expect(await isRevoked(token)).toBe(false);
    const again = await api.logIn(owner.email, NEW_PASSWORD);
    const later = await mintToken(again);
    await api.anonymous.post("/auth/forgot", { email: owner.email });
    const link = await readMailedToken(owner.email, "/reset", 1);
    await api.anonymous.post("/auth/reset", { token: link, new_password: NEW_PASSWORD });
    expect([await isRevoked(token), await isRevoked(later)]).toEqual([false, true]);
  });

  test("does not revoke tokens of other members", async () => {
    const owner = await api.owner();
    const member = await api.colleague(owner, "member");
    const token = await mintToken(owner);
    await mintToken(member);
    await reset(member.email);
    expect(await isRevoked(token)).toBe(false);
  });
});

describe("a second factor that its user cannot pass", () => {
  const request = (challenge: string) =>
    api.anonymous.post("/auth/mfa/removal", { challenge_token: challenge });
  const complete = (token: string) => api.anonymous.post("/auth/mfa/removal/complete", { token });
  const cancel = (token: string) => api.anonymous.post("/auth/mfa/removal/cancel", { token });
  const passDelay = ({ userId }: Person) =>
    api.sql(
      "update mfa_removals set requested_at = requested_at - interval '1 day', usable_at = usable_at - interval '1 day' where user_id = $1",
      [userId],
    );
  async function requestRemoval(owner: Person): Promise<string> {
    const challenge = await startChallenge(api, owner);
    expect(await request(challenge)).toMatchObject({
      status: 202,
      body: { status: "removal_requested" },
    });
    return readMailedToken(owner.email, "/two-factor");
  }

  test("is removed by the mailed link after a day, once, and every session ends", async () => {
    const owner = await api.owner();
    await enableSecondFactor(api, owner);
    const token = await requestRemoval(owner);
    const { body } = await owner.get<Me>("/auth/me");
    const inHours = (Date.parse(body.mfa_removable_at!) - Date.now()) / 3_600_000;
    expect(inHours).toBeGreaterThan(23.9);
    expect(inHours).toBeLessThanOrEqual(24);

    expect(await complete(token)).toMatchObject({ status: 409, body: { error: "conflict" } });
    await passDelay(owner);
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => complete(token)));
    expect(outcomes.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(outcomes.filter(({ status }) => status === 400)).toHaveLength(7);
    expect((await owner.get("/auth/me")).status).toBe(401);
    const again = await api.logIn(owner.email, owner.password);
    expect((await again.get<Me>("/auth/me")).body.mfa_enabled).toBe(false);
    const actions = await listActions(owner);
    expect(actions).toContain("mfa_removal_requested");
    expect(actions).toContain("mfa_disabled");
  });

  test("stays when the removal is canceled: with the link, signed in, by a reset, or by turning it off", async () => {
    const cancellations: [string, (owner: Person, token: string) => Promise<unknown>][] = [
      ["the link", (_, token) => cancel(token)],
      ["a signed-in user", (owner) => owner.delete("/auth/mfa/removal")],
      [
        "a reset",
        async ({ email }) => {
          await api.anonymous.post("/auth/forgot", { email });
          const token = await readMailedToken(email, "/reset");
          await api.anonymous.post("/auth/reset", { token, new_password: NEW_PASSWORD });
        },
      ],
      ["turning it off", (owner) => owner.post("/auth/mfa/disable", { password: owner.password })],
    ];
    for (const [how, act] of cancellations) {
      const owner = await api.owner();
      await enableSecondFactor(api, owner);
      const token = await requestRemoval(owner);
      await act(owner, token);
      await passDelay(owner);
      expect([how, (await complete(token)).status]).toEqual([how, 400]);
      expect([how, (await cancel(token)).status]).toEqual([how, 400]);
    }
  });

  test("is asked about once a day, however often the removal is requested", async () => {
    const owner = await api.owner();
    await enableSecondFactor(api, owner);
    const token = await requestRemoval(owner);
    const challenge = await startChallenge(api, owner);
    await Promise.all(Array.from({ length: 10 }, () => request(challenge)));
    await cancel(token);
    await request(challenge);
    expect((await listActions(owner)).filter((a) => a === "mfa_removal_requested")).toHaveLength(1);
    await passDelay(owner);
    await api.sql(
      "update mfa_removals set usable_at = now() - interval '1 second' where user_id = $1",
      [owner.userId],
    );
    await request(challenge);
    expect((await listActions(owner)).filter((a) => a === "mfa_removal_requested")).toHaveLength(2);
  });

  test("needs a password for the request, and the mail for the removal", async () => {
    const owner = await api.owner();
    await enableSecondFactor(api, owner);
    expect((await request("x".repeat(43))).status).toBe(401);
    expect((await complete("x".repeat(43))).status).toBe(400);
    expect((await owner.delete("/auth/mfa/removal")).status).toBe(404);
    const challenge = await startChallenge(api, owner);
    await requestRemoval(owner);
    await passDelay(owner);
    expect((await complete(challenge)).status).toBe(400);
  });
});
