/** Which rows the scheduled job deletes, and which it retains for some time after their end. */
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  EXPIRED_ROW_RETENTION_MS,
  MFA_GUESSES_WINDOW_MS,
  UNVERIFIED_ACCOUNTS_MAX,
} from "../../../workers/limits.ts";
import {
  newEmail,
  PASSWORD,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
});
afterAll(() => api.stop());

/**
 * Inserts rows and runs the scheduled job.
 * @param endedMs how long ago each row ended; negative is in the future.
 * @returns the same of the rows that remain.
 */
async function cleanUp(
  table: string,
  insert: (endsAt: Date, at: number) => Promise<unknown>,
  endedMs: number[],
) {
  await api.sql(`delete from ${table}`);
  for (const [at, ms] of endedMs.entries()) await insert(new Date(Date.now() - ms), at);
  await api.runCron();
  const rows = await api.sql<{ ended: number }>(
    `select extract(epoch from now() - expires_at) * 1000 as ended from ${table} order by expires_at desc`,
  );
  return rows.map(({ ended }) => Math.round(Number(ended) / 60_000) * 60_000);
}

const MINUTE = 60_000;

test("challenges are deleted once their wrong codes no longer count", async () => {
  const insert = (endsAt: Date, at: number) =>
    api.sql("insert into mfa_challenges (token_hash, user_id, expires_at) values ($1, $2, $3)", [
      `challenge ${at}`,
      owner.userId,
      endsAt,
    ]);
  const ended = [-5 * MINUTE, 5 * MINUTE, MFA_GUESSES_WINDOW_MS + 5 * MINUTE];
  expect(await cleanUp("mfa_challenges", insert, ended)).toEqual(ended.slice(0, 2));
});

test("password reset tokens are deleted after an hour, used or not", async () => {
  const insert = (endsAt: Date, at: number) =>
    api.sql(
      "insert into password_resets (token_hash, user_id, expires_at, used_at) values ($1, $2, $3, $4)",
      [`reset ${at}`, owner.userId, endsAt, at === 2 ? new Date() : null],
    );
  const ended = [-30 * MINUTE, 5 * MINUTE, 5 * MINUTE];
  expect(await cleanUp("password_resets", insert, ended)).toEqual([-30 * MINUTE]);
});

test("expired codes are deleted, and a pending account is not", async () => {
  const email = newEmail();
  await api.anonymous.post("/auth/signup", { email, password: PASSWORD });
  const pending = newEmail();
  await api.anonymous.post("/auth/signup", { email: pending, password: PASSWORD });
  await api.sql(
    "update email_codes set expires_at = now() - interval '61 minutes' where user_id = (select id from users where email = $1)",
    [email],
  );
  await api.runCron();
  const codes = await api.sql(
    "select email from email_codes join users on users.id = user_id where email = any($1)",
    [[email, pending]],
  );
  expect(codes).toEqual([{ email: pending }]);
  expect(await api.sql("select 1 from users where email = $1", [email])).toHaveLength(1);
});

test("a removal of a second factor is deleted when its link has expired", async () => {
  const insert = async (endsAt: Date) => {
    const { userId } = await api.owner();
    await api.sql(
      "insert into mfa_removals (user_id, token_hash, usable_at, expires_at) values ($1::uuid, $1::text, now(), $2)",
      [userId, endsAt],
    );
  };
  expect(await cleanUp("mfa_removals", insert, [-5 * MINUTE, 5 * MINUTE])).toEqual([-5 * MINUTE]);
});

test("the oldest unconfirmed sign-ups beyond the maximum are deleted", async () => {
  const pattern = "flood-%@example.com";
  await api.sql(
    `insert into users (email, created_at)
     select 'flood-' || n || '@example.com', now() - n * interval '1 second' from generate_series(1, $1::int) n`,
    [UNVERIFIED_ACCOUNTS_MAX + 5],
  );
  await api.runCron();
  const left = await api.sql<{ email: string }>(
    "select email from users where email like $1 order by created_at desc",
    [pattern],
  );
  // Without the search for each deleted row in all tables that refer to accounts.
  await api.sql("set session_replication_role = replica");
  await api.sql("delete from users where email like $1", [pattern]);
  await api.sql("set session_replication_role = origin");
  expect(left[0]).toEqual({ email: "flood-1@example.com" });
  expect(left.length).toBeLessThanOrEqual(UNVERIFIED_ACCOUNTS_MAX);
});

test("an old sign-up is not deleted while a new code for it is valid", async () => {
  const email = newEmail();
  await api.anonymous.post("/auth/signup", { email, password: PASSWORD });
  await api.getMailedCode(email);
  await api.sql("update users set created_at = now() - interval '8 days' where email = $1", [
    email,
  ]);
  await api.anonymous.post("/auth/signup", { email, password: PASSWORD });
  await waitUntil(async () => (await api.readMailsTo(email)).length === 2);
  await api.runCron();
  const code = await api.getMailedCode(email);
  const { status } = await api.anonymous.post("/auth/verify-email-otp", { email, code });
  expect(status).toBe(200);
});

test("invitations are stored for some time after their end, whatever the outcome", async () => {
  const insert = (endsAt: Date, at: number) =>
    api.sql(
      "insert into invitations (org_id, email, role, token_hash, expires_at, accepted_at) values ($1, $2, 'member', $3, $4, $5)",
      [owner.orgId, `invited-${at}@example.com`, `hash ${at}`, endsAt, at % 2 ? new Date() : null],
    );
  const tooLongAgo = EXPIRED_ROW_RETENTION_MS + 5 * MINUTE;
  const ended = [-5 * MINUTE, 5 * MINUTE, tooLongAgo, tooLongAgo];
  expect(await cleanUp("invitations", insert, ended)).toEqual(ended.slice(0, 2));
});

test("sessions are stored for some time after their end, and a session in use permanently", async () => {
  await api.sql(
    "insert into sessions (user_id, org_id, refresh_hash, expires_at, device, ip) values ($1, $2, 'a', $3, '', ''), ($1, $2, 'b', $4, '', '')",
    [
      owner.userId,
      owner.orgId,
      new Date(Date.now() - MINUTE),
      new Date(Date.now() - EXPIRED_ROW_RETENTION_MS - MINUTE),
    ],
  );
  await api.runCron();
  const rows = await api.sql<{ refresh_hash: string }>(
    "select refresh_hash from sessions where user_id = $1 and expires_at < now()",
    [owner.userId],
  );
  expect(rows).toEqual([{ refresh_hash: "a" }]);
  expect((await owner.get("/auth/me")).status).toBe(200);
});
