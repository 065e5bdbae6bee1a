import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type {
  AccountSummary,
  Me,
  MfaRequired,
} from "../../../protocol/schemas/accounts/accounts.ts";
import { MFA_OPEN_CHALLENGES_MAX } from "../../../workers/limits.ts";
import {
  createCaller,
  getFirstCookie,
  startApi,
  waitUntil,
  type Person,
  type Reply,
  type TestApi,
} from "../../harness/server/api.ts";
import {
  startChallenge,
  generateCode,
  enableSecondFactor,
  generateWrongCode,
  type SecondFactor,
} from "../../harness/browser/second-factor.ts";

let api: TestApi;
let owner: Person & SecondFactor;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

async function createPersonWithMfa(): Promise<Person & SecondFactor> {
  const person = await api.owner();
  return { ...person, ...(await enableSecondFactor(api, person)) };
}

const sendSecondFactor = (challenge_token: string, factor: object) =>
  api.anonymous.post<AccountSummary>("/auth/login/mfa", { challenge_token, ...factor });
const sendWrongCodes = async (challenge: string, times: number) => {
  const code = generateWrongCode(owner.secret);
  for (let n = 0; n < times; n++)
    expect((await sendSecondFactor(challenge, { code })).status).toBe(401);
};
const successes = (replies: Reply<unknown>[]) => replies.filter(({ status }) => status === 200);
const failedEvents = () =>
  api.sql("select 1 from audit_events where user_id = $1 and action = 'mfa_failed'", [
    owner.userId,
  ]);
/** Moves the expiry of the challenges back, as if this time had passed. */
const advanceClock = (interval: string) =>
  api.sql(`update mfa_challenges set expires_at = expires_at - $2::interval where user_id = $1`, [
    owner.userId,
    interval,
  ]);
function withoutRequestId({ status, body, headers }: Reply<unknown>) {
  const comparable = [...headers].filter(([name]) => !/^(underpass-request-id|date)$/.test(name));
  return { status, body, headers: comparable };
}

describe("with a second factor on, a password", () => {
  test("gives a challenge and nothing else", async () => {
    owner = await createPersonWithMfa();
    const { email, password } = owner;
    const { status, body, headers } = await api.anonymous.post<MfaRequired>("/auth/login", {
      email,
      password,
    });
    expect({ status, body }).toEqual({
      status: 200,
      body: { mfa_required: true, challenge_token: expect.stringMatching(/^[\w-]{43}$/) },
    });
    expect(headers.getSetCookie()).toEqual([]);
    const rows = await api.sql("select * from mfa_challenges where user_id = $1", [owner.userId]);
    expect(JSON.stringify(rows)).not.toContain(body.challenge_token);
  });

  test("that is wrong gives the same 401 as without a second factor", async () => {
    owner = await createPersonWithMfa();
    const plain = await api.owner();
    const [guarded, open] = await Promise.all(
      [owner, plain].map(({ email }) =>
        api.anonymous.post("/auth/login", { email, password: "not the right password" }),
      ),
    );
    expect(withoutRequestId(guarded!)).toEqual(withoutRequestId(open!));
  });

  test("gives a challenge that opens neither the account, nor a device request, nor a session", async () => {
    owner = await createPersonWithMfa();
    const challenge = await startChallenge(api, owner);
    const asBearer = createCaller(api.server, { authorization: `Bearer ${challenge}` });
    expect((await asBearer.get("/auth/me")).status).toBe(401);
    const { body: machine } = await api.anonymous.post<{ device_code: string }>(
      "/auth/cli/start",
      {},
    );
    expect((await asBearer.post("/auth/cli/authorize", machine)).status).toBe(401);
    const asCookie = createCaller(api.server, { cookie: `qnt_refresh=${challenge}` });
    expect((await asCookie.post("/auth/refresh")).status).toBe(401);
  });
});

describe("the second factor", () => {
  test("signs in with a code of the authenticator", async () => {
    owner = await createPersonWithMfa();
    const reply = await sendSecondFactor(await startChallenge(api, owner), {
      code: generateCode(owner.secret, 1),
    });
    expect(reply).toMatchObject({
      status: 200,
      body: { user: { email: owner.email }, active_org: { id: owner.orgId, role: "owner" } },
    });
    expect(reply.headers.getSetCookie()[0]).toMatch(
      /^qnt_refresh=[^;]+; Max-Age=2592000; Path=\/auth; HttpOnly; SameSite=Lax$/,
    );
    const caller = createCaller(api.server, { authorization: `Bearer ${reply.body.access_token}` });
    expect((await caller.get<Me>("/auth/me")).body).toMatchObject({ mfa_enabled: true });
    const cookie = getFirstCookie(reply.headers);
    expect((await createCaller(api.server, { cookie }).post("/auth/refresh")).status).toBe(200);
  });

  test("signs in with a recovery code in any spelling, which the audit log records", async () => {
    owner = await createPersonWithMfa();
    const recoveryCode = owner.recoveryCodes[3]!.toUpperCase().replaceAll("-", " ");
    const reply = await sendSecondFactor(await startChallenge(api, owner), {
      recovery_code: recoveryCode,
    });
    expect(reply.status).toBe(200);
    const caller = createCaller(api.server, { authorization: `Bearer ${reply.body.access_token}` });
    const { body: events } = await caller.get("/me/events");
    expect(events).toContainEqual(
      expect.objectContaining({
        action: "session_created",
        metadata: expect.objectContaining({ secondFactor: "recovery_code" }),
      }),
    );
  });

  test("is either a code or a recovery code, not both and not neither", async () => {
    owner = await createPersonWithMfa();
    const challenge = await startChallenge(api, owner);
    const code = generateCode(owner.secret, 1);
    for (const factor of [{}, { code, recovery_code: owner.recoveryCodes[0] }]) {
      expect(await sendSecondFactor(challenge, factor)).toMatchObject({
        status: 400,
        body: { error: "invalid_request", fields: [{ path: "code" }] },
      });
    }
    expect((await sendSecondFactor(challenge, { code })).status).toBe(200);
  });

  test("fails with the same response, whatever the reason", async () => {
    owner = await createPersonWithMfa();
    const [used, ...unused] = owner.recoveryCodes as [string, ...string[]];
    const consumed = await startChallenge(api, owner);
    expect((await sendSecondFactor(consumed, { recovery_code: used })).status).toBe(200);
    const expired = await startChallenge(api, owner);
    await advanceClock("5 minutes");
    const open = await startChallenge(api, owner);
    const otherChallenge = await createPersonWithMfa().then((person) =>
      startChallenge(api, person),
    );

    const failures = [
      await sendSecondFactor("unknown", { recovery_code: unused[0] }),
      await sendSecondFactor("", { recovery_code: unused[0] }),
      await sendSecondFactor(consumed, { recovery_code: unused[0] }),
      await sendSecondFactor(expired, { recovery_code: unused[0] }),
      await sendSecondFactor(otherChallenge, { recovery_code: unused[0] }),
      await sendSecondFactor(open, { code: owner.spentCode }),
      await sendSecondFactor(open, { recovery_code: used }),
      await sendSecondFactor(open, { code: generateWrongCode(owner.secret) }),
      await sendSecondFactor(open, { code: "not six digits" }),
      await sendSecondFactor(open, { code: generateCode(owner.secret, -2) }),
      await sendSecondFactor(open, { recovery_code: unused[0] }),
    ].map(withoutRequestId);
    for (const failure of failures) expect(failure).toEqual(failures[0]);
    expect(failures[0]).toMatchObject({
      status: 401,
      body: {
        error: "unauthorized",
        message: expect.stringMatching(/was used already.*After too many wrong attempts/),
      },
    });
    expect(
      (await sendSecondFactor(await startChallenge(api, owner), { recovery_code: unused[0] }))
        .status,
    ).toBe(200);
  });

  test("cannot be passed after a password reset with a challenge of the old password", async () => {
    owner = await createPersonWithMfa();
    const challenge = await startChallenge(api, owner);
    await api.sql("insert into password_resets values ($1, $2, now() + interval '1 hour')", [
      createHash("sha256").update("the token").digest("hex"),
      owner.userId,
    ]);
    const body = { token: "the token", new_password: "another good password" };
    expect((await api.anonymous.post("/auth/reset", body)).status).toBe(200);
    const factor = { recovery_code: owner.recoveryCodes[0] };
    expect((await sendSecondFactor(challenge, factor)).status).toBe(401);
    const again = await startChallenge(api, { ...owner, password: body.new_password });
    expect((await sendSecondFactor(again, factor)).status).toBe(200);
  });
});

describe("a sign-in in progress", () => {
  test.each([
    ["to a session", "a second factor is turned on", false, "mfa_secret = 'v1.a.b.c'"],
    ["to a session", "the password changes", false, "password_hash = 'another'"],
    ["to a challenge", "the password changes", true, "password_hash = 'another'"],
  ])("%s does not complete when in the meantime %s", async (_, __, guarded, change) => {
    const { userId, email, password } = guarded ? await createPersonWithMfa() : await api.owner();
    await api.sql("begin");
    await api.sql(`update users set ${change} where id = $1`, [userId]);
    const signIn = api.anonymous.post("/auth/login", { email, password });
    await waitUntil(
      async () => (await api.sql("select 1 from pg_locks where not granted")).length > 0,
    );
    await api.sql("commit");
    expect(await signIn).toMatchObject({ status: 401, body: { error: "unauthorized" } });
  });
});

describe("twenty concurrent sign-ins", () => {
  const startTwentyChallenges = () => Array.from({ length: 20 }, () => startChallenge(api, owner));

  test("succeed once with one code of the authenticator", async () => {
    owner = await createPersonWithMfa();
    const challenges = await Promise.all(startTwentyChallenges());
    const code = generateCode(owner.secret, 1);
    const replies = await Promise.all(
      challenges.map((challenge) => sendSecondFactor(challenge, { code })),
    );
    expect(successes(replies)).toHaveLength(1);
  });

  test("succeed once with one recovery code", async () => {
    owner = await createPersonWithMfa();
    const challenges = await Promise.all(startTwentyChallenges());
    const factor = { recovery_code: owner.recoveryCodes[0] };
    const replies = await Promise.all(
      challenges.map((challenge) => sendSecondFactor(challenge, factor)),
    );
    expect(successes(replies)).toHaveLength(1);
  });

  test("succeed once with one challenge, and spend one recovery code", async () => {
    owner = await createPersonWithMfa();
    const challenge = await startChallenge(api, owner);
    const codes = [...owner.recoveryCodes, ...owner.recoveryCodes];
    const replies = await Promise.all(
      codes.map((recovery_code) => sendSecondFactor(challenge, { recovery_code })),
    );
    expect(successes(replies)).toHaveLength(1);
    const spent = await api.sql(
      "select 1 from recovery_codes where user_id = $1 and used_at is not null",
      [owner.userId],
    );
    expect(spent).toHaveLength(1);
  });
});

describe("guessing", () => {
  test("has at most twenty open challenges of an account, of which the oldest ends first", async () => {
    const owner = await api.owner();
    const { secret } = await enableSecondFactor(api, owner);
    const challenges = [];
    for (let n = 0; n <= MFA_OPEN_CHALLENGES_MAX; n++) {
      challenges.push(await startChallenge(api, owner));
    }
    const [{ open } = { open: 0 }] = await api.sql<{ open: number }>(
      "select count(*)::int as open from mfa_challenges where user_id = $1 and expires_at > now()",
      [owner.userId],
    );
    expect(open).toBe(MFA_OPEN_CHALLENGES_MAX);
    const pass = async (challenge: string) => {
      const body = { challenge_token: challenge, code: generateCode(secret, 1) };
      return (await api.anonymous.post("/auth/login/mfa", body)).status;
    };
    expect(await pass(challenges[0]!)).toBe(401);
    expect(await pass(challenges.at(-1)!)).toBe(200);
  });

  test("voids a challenge after five wrong codes: the right one is refused too", async () => {
    owner = await createPersonWithMfa();
    const challenge = await startChallenge(api, owner);
    await sendWrongCodes(challenge, 5);
    expect(
      (await sendSecondFactor(challenge, { code: generateCode(owner.secret, 1) })).status,
    ).toBe(401);
    expect(
      (await sendSecondFactor(challenge, { recovery_code: owner.recoveryCodes[0] })).status,
    ).toBe(401);
    expect(await failedEvents()).toHaveLength(5);
    const next = await startChallenge(api, owner);
    expect((await sendSecondFactor(next, { code: generateCode(owner.secret, 1) })).status).toBe(
      200,
    );
  });

  test("allows five attempts for a challenge, also concurrent ones", async () => {
    owner = await createPersonWithMfa();
    const challenge = await startChallenge(api, owner);
    const code = generateWrongCode(owner.secret);
    const replies = await Promise.all(
      Array.from({ length: 40 }, () => sendSecondFactor(challenge, { code })),
    );
    expect(successes(replies)).toEqual([]);
    expect(await failedEvents()).toHaveLength(5);
  });

  test("allows ten attempts for an account, over all its challenges", async () => {
    owner = await createPersonWithMfa();
    const challenges = await Promise.all(
      Array.from({ length: 10 }, () => startChallenge(api, owner)),
    );
    const code = generateWrongCode(owner.secret);
    await Promise.all(
      challenges.flatMap((challenge) =>
        [1, 2, 3, 4].map(() => sendSecondFactor(challenge, { code })),
      ),
    );
    expect(await failedEvents()).toHaveLength(10);
  });

  test("locks the account for an hour, which a new sign-in does not shorten", async () => {
    owner = await createPersonWithMfa();
    for (const times of [4, 4, 2]) await sendWrongCodes(await startChallenge(api, owner), times);
    const right = { code: generateCode(owner.secret, 1) };
    expect((await sendSecondFactor(await startChallenge(api, owner), right)).status).toBe(401);
    const recovery = { recovery_code: owner.recoveryCodes[0] };
    expect((await sendSecondFactor(await startChallenge(api, owner), recovery)).status).toBe(401);
    await advanceClock("59 minutes");
    expect((await sendSecondFactor(await startChallenge(api, owner), recovery)).status).toBe(401);
    await advanceClock("10 minutes");
    expect((await sendSecondFactor(await startChallenge(api, owner), recovery)).status).toBe(200);
  });

  test("starts counting again after a success, but no challenge allows more than five attempts", async () => {
    owner = await createPersonWithMfa();
    const guessed = await startChallenge(api, owner);
    await sendWrongCodes(guessed, 4);
    await sendWrongCodes(await startChallenge(api, owner), 5);
    const untouched = await startChallenge(api, owner);
    const [first, second, third] = owner.recoveryCodes;
    const right = await startChallenge(api, owner);
    expect((await sendSecondFactor(right, { recovery_code: first })).status).toBe(200);
    expect((await sendSecondFactor(guessed, { recovery_code: second })).status).toBe(401);
    await sendWrongCodes(await startChallenge(api, owner), 5);
    await sendWrongCodes(await startChallenge(api, owner), 4);
    expect((await sendSecondFactor(untouched, { recovery_code: third })).status).toBe(200);
  });
});
