/** A response reveals nothing about an address: not whether it has an account, nor which kind. A benchmark compares the durations. */
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  newEmail,
  PASSWORD,
  startApi,
  waitUntil,
  type Reply,
  type TestApi,
} from "../../harness/server/api.ts";

let api: TestApi;
let addresses: Record<string, string>;

beforeAll(async () => {
  api = await startApi();
  const [confirmed, withSecondFactor, withoutPassword] = [
    await api.owner(),
    await api.owner(),
    await api.owner(),
  ];
  await api.sql("update users set mfa_secret = 'encrypted' where id = $1", [
    withSecondFactor.userId,
  ]);
  await api.sql("update users set password_hash = null where id = $1", [withoutPassword.userId]);
  const unconfirmed = newEmail();
  await api.anonymous.post("/auth/signup", { email: unconfirmed, password: PASSWORD });
  addresses = {
    confirmed: confirmed.email,
    withSecondFactor: withSecondFactor.email,
    withoutPassword: withoutPassword.email,
    unconfirmed,
  };
});
afterAll(() => api.stop());

const UNIQUE_HEADERS = /^(underpass-request-id|date)$/;
function toComparable({ status, body, headers }: Reply<unknown>) {
  return { status, body, headers: [...headers].filter(([name]) => !UNIQUE_HEADERS.test(name)) };
}

test.each([
  ["/auth/signup", { password: "another good password" }, 201],
  ["/auth/login", { password: "not the right password" }, 401],
  ["/auth/login", { password: "" }, 401],
  ["/auth/login", { password: "é".repeat(513) }, 401],
  ["/auth/resend-verify-otp", {}, 200],
  ["/auth/forgot", {}, 202],
  ["/auth/verify-email-otp", { code: "no code" }, 400],
])(
  "POST %s %j gives the same response with and without an account: %d",
  async (path, fields, status) => {
    const unknown = toComparable(await api.anonymous.post(path, { ...fields, email: newEmail() }));
    expect(unknown.status).toBe(status);
    for (const [kind, email] of Object.entries(addresses)) {
      const actual = toComparable(await api.anonymous.post(path, { ...fields, email }));
      expect([kind, actual]).toEqual([kind, unknown]);
    }
  },
);

test("the right password of an account that cannot log in looks like a wrong one", async () => {
  const [wrong, correct] = await Promise.all([
    api.anonymous.post("/auth/login", { email: newEmail(), password: PASSWORD }),
    api.anonymous.post("/auth/login", { email: addresses.unconfirmed, password: PASSWORD }),
  ]);
  expect(toComparable(correct)).toEqual(toComparable(wrong));
});

test("signing up creates the same rows with and without an account: a code, an event, an email", async () => {
  const outcomes = [];
  for (const email of [addresses.confirmed!, addresses.unconfirmed!, newEmail()]) {
    const rows = async () => {
      const [row] = await api.sql<{ id: string }>("select id from users where email = $1", [email]);
      const count = async (table: string) =>
        (await api.sql(`select 1 from ${table} where user_id = $1`, [row?.id])).length;
      return { events: await count("audit_events"), codes: await count("email_codes") };
    };
    const before = await rows();
    const mailsBefore = (await api.readMailsTo(email)).length;
    await api.anonymous.post("/auth/signup", { email, password: PASSWORD });
    await waitUntil(async () => (await api.readMailsTo(email)).length === mailsBefore + 1);
    const after = await rows();
    outcomes.push({ events: after.events - before.events, codes: after.codes });
  }
  expect(outcomes).toEqual(outcomes.map(() => ({ events: 1, codes: 1 })));
});

test("a code for an account that is already verified has no effect, even the right one", async () => {
  const email = newEmail();
  await api.anonymous.post("/auth/signup", { email, password: PASSWORD });
  const code = await api.getMailedCode(email);
  const verify = () => api.anonymous.post("/auth/verify-email-otp", { email, code });
  const condition = "where user_id = (select id from users where email = $1)";
  const [first] = await api.sql<{ hash: string }>(
    `select code_hash as hash from email_codes ${condition}`,
    [email],
  );
  expect((await verify()).status).toBe(200);
  await api.anonymous.post("/auth/signup", { email, password: "another good password" });
  const updated = await api.sql(
    `update email_codes set code_hash = $2 ${condition} and consumed_at is null returning 1`,
    [email, first!.hash],
  );
  expect(updated).toHaveLength(1);
  expect((await verify()).status).toBe(400);
  expect(await api.sql(`select 1 from memberships ${condition}`, [email])).toHaveLength(1);
  expect((await api.anonymous.post("/auth/login", { email, password: PASSWORD })).status).toBe(200);
});

test.each(["/auth/signup", "/auth/login", "/auth/forgot", "/auth/resend-verify-otp"])(
  "POST %s refuses an address that the database cannot store",
  async (path) => {
    const email = "some\0body@example.com";
    const { status, body } = await api.anonymous.post(path, { email, password: PASSWORD });
    expect([status, body]).toEqual([400, expect.objectContaining({ error: "invalid_request" })]);
  },
);
