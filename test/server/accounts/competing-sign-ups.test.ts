/**
 * A stranger signs up with the address of another person. In no order of events does a password count that the owner of
 * the mailbox did not send.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import PostalMime from "postal-mime";
import { SIGN_UP_MAILS_HOURLY_MAX } from "../../../workers/limits.ts";
import {
  newEmail,
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

const OWNERS = "the password of the owner";
const STRANGERS = "the password of a stranger";
const CHOSEN = "a password chosen by a link";

/** What happens to an address: sign-ups by its owner and by strangers, and requests for another code. */
type Step = "owner" | "stranger" | "another stranger" | "resend";

async function takeStep(email: string, step: Step): Promise<string> {
  const mails = (await api.readMailsTo(email)).length;
  const passwords = {
    owner: OWNERS,
    stranger: STRANGERS,
    "another stranger": `${STRANGERS} too`,
  };
  if (step === "resend") await api.anonymous.post("/auth/resend-verify-otp", { email });
  else await api.anonymous.post("/auth/signup", { email, password: passwords[step] });
  await waitUntil(async () => (await api.readMailsTo(email)).length === mails + 1);
  return api.getMailedCode(email);
}
const verify = (email: string, code: string) =>
  api.anonymous.post("/auth/verify-email-otp", { email, code });
const logIn = async (email: string, password: string) =>
  (await api.anonymous.post("/auth/login", { email, password })).status;

async function readPasswordLinks(email: string): Promise<string[]> {
  const mails = await Promise.all(
    (await api.readMailsTo(email)).map((mail) => PostalMime.parse(mail)),
  );
  return mails.flatMap(({ text }) => /\/reset#token=([\w-]+)$/m.exec(text!)?.[1] ?? []);
}

describe("sign-ups with different passwords for one address", () => {
  test.each<[string, Step[]]>([
    ["the owner first", ["owner", "stranger"]],
    ["the stranger first", ["stranger", "owner"]],
    ["a stranger in between", ["owner", "stranger", "owner"]],
    ["the owner in between", ["stranger", "owner", "stranger"]],
    ["two strangers", ["stranger", "another stranger"]],
    ["another code afterwards", ["owner", "stranger", "resend"]],
    ["another code in between", ["stranger", "resend", "owner"]],
    ["the owner twice at last", ["stranger", "owner", "owner"]],
  ])("leave no password that counts, and the owner sets one by mail: %s", async (_, steps) => {
    const email = newEmail();
    let code = "";
    for (const step of steps) code = await takeStep(email, step);
    expect(await verify(email, code)).toMatchObject({
      status: 200,
      body: { status: "password_required" },
    });
    for (const password of [OWNERS, STRANGERS, `${STRANGERS} too`]) {
      expect([password, await logIn(email, password)]).toEqual([password, 401]);
    }
    const token = await waitUntil(async () => (await readPasswordLinks(email))[0]);
    const reset = { token, new_password: CHOSEN };
    expect((await api.anonymous.post("/auth/reset", reset)).status).toBe(200);
    expect(await logIn(email, CHOSEN)).toBe(200);
    expect(await logIn(email, STRANGERS)).toBe(401);
  });

  test("of which the older code is entered confirm nothing", async () => {
    const email = newEmail();
    const older = await takeStep(email, "owner");
    const newest = await takeStep(email, "stranger");
    if (older !== newest) expect((await verify(email, older)).status).toBe(400);
    expect(await logIn(email, OWNERS)).toBe(401);
    expect(await logIn(email, STRANGERS)).toBe(401);
  });

  test("at the same time leave no password that counts", async () => {
    const email = newEmail();
    const passwords = Array.from({ length: 8 }, (_, n) => (n % 2 ? OWNERS : STRANGERS));
    await Promise.all(
      passwords.map((password) => api.anonymous.post("/auth/signup", { email, password })),
    );
    await waitUntil(async () => (await api.readMailsTo(email)).length === passwords.length);
    const [row] = await api.sql<{ password_hash: string | null }>(
      "select password_hash from users where email = $1",
      [email],
    );
    expect(row!.password_hash).toBeNull();
  });

  test("after the confirmation do not change the password", async () => {
    const email = newEmail();
    await verify(email, await takeStep(email, "owner"));
    await api.anonymous.post("/auth/signup", { email, password: STRANGERS });
    expect(await logIn(email, STRANGERS)).toBe(401);
    expect(await logIn(email, OWNERS)).toBe(200);
  });
});

test("sign-ups with the same password, and another code, keep the password", async () => {
  const email = newEmail();
  await takeStep(email, "owner");
  await takeStep(email, "owner");
  const code = await takeStep(email, "resend");
  expect(await verify(email, code)).toMatchObject({ status: 200, body: { status: "verified" } });
  expect(await logIn(email, OWNERS)).toBe(200);
  expect(await readPasswordLinks(email)).toEqual([]);
});

test("no answer shows a stranger that an address is contested", async () => {
  const [contested, fresh] = [newEmail(), newEmail()];
  await takeStep(contested, "owner");
  await takeStep(contested, "stranger");
  await takeStep(fresh, "owner");
  const requests = [
    ["/auth/signup", { password: STRANGERS }],
    ["/auth/signup", { password: OWNERS }],
    ["/auth/login", { password: STRANGERS }],
    ["/auth/login", { password: OWNERS }],
    ["/auth/resend-verify-otp", {}],
    ["/auth/forgot", {}],
    ["/auth/verify-email-otp", { code: "x" }],
  ] as const;
  const comparable = ({ status, body, headers }: Reply<unknown>) => ({
    status,
    body,
    headers: [...headers].filter(([name]) => !/^(underpass-request-id|date)$/.test(name)),
  });
  for (const [path, fields] of requests) {
    const [one, other] = [
      await api.anonymous.post(path, { ...fields, email: contested }),
      await api.anonymous.post(path, { ...fields, email: fresh }),
    ];
    expect([path, comparable(one)]).toEqual([path, comparable(other)]);
  }
});

test("sign-ups send a mailbox ten mails an hour, under whatever tags, and another mailbox its own", async () => {
  const signUp = (email: string) =>
    api.anonymous.post("/auth/signup", { email, password: STRANGERS });
  const [name, domain] = newEmail().split("@") as [string, string];
  const emails = Array.from({ length: 20 }, (_, at) => `${name}+${at}@${domain}`);
  const replies = await Promise.all(emails.map((email) => signUp(email)));
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([201]));
  const readMails = async () =>
    (await Promise.all(emails.map((email) => api.readMailsTo(email)))).flat();
  await waitUntil(async () => (await readMails()).length >= SIGN_UP_MAILS_HOURLY_MAX);
  const counted = await api.sql(
    "select sum(mails_sent)::integer as mails from users where email like $1",
    [`${name}+%`],
  );
  expect(counted).toEqual([{ mails: SIGN_UP_MAILS_HOURLY_MAX }]);
  expect(await readMails()).toHaveLength(SIGN_UP_MAILS_HOURLY_MAX);
  const another = `${name}x+1@${domain}`;
  await signUp(another);
  expect(await api.getMailedCode(another)).toMatch(/^\d{6}$/);
});
