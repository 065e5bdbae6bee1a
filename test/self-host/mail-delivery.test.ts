/** Delivery of mails from a sign-up through the outbox to a real SMTP server. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { OUTBOX_RETRY_MAX_MS, OUTBOX_RETRY_MIN_MS } from "../../workers/store/outbox.ts";
import { newEmail, PASSWORD, startApi, waitUntil, type TestApi } from "../harness/server/api.ts";
import {
  startMailServer,
  type MailServer,
  type MailServerBehavior,
} from "../harness/fakes/mail-server.ts";

let smtp: MailServer;
let api: TestApi;
/** Length of the log before a test, which reads only what follows. */
let logStart: number;
beforeAll(async () => {
  smtp = await startMailServer();
  api = await startApi({ env: { SMTP_URL: `smtp://127.0.0.1:${smtp.port}` } });
});
beforeEach(async () => {
  await smtp.stop();
  await smtp.start();
  smtp.behavior = "accepts";
  smtp.connections = 0;
  await api.sql("delete from outbox");
  logStart = api.server.output.length;
});
afterAll(async () => {
  await smtp.stop();
  await api.stop();
});

async function signUp(): Promise<string> {
  const email = newEmail();
  const reply = await api.anonymous.post("/auth/signup", { email, password: PASSWORD });
  expect(reply.status).toBe(201);
  return email;
}
const findMailsTo = (email: string) =>
  smtp.mails.filter(({ to }) => to?.some(({ address }) => address === email));
const waitForMailTo = (email: string) => waitUntil(() => Promise.resolve(findMailsTo(email)[0]));
const readLog = () => api.server.output.slice(logStart);
const waitForLog = (event: string) => waitUntil(() => Promise.resolve(readLog().includes(event)));
const readWaiting = () =>
  api.sql<{ attempts: number; wait_ms: number }>(
    "select attempts, extract(epoch from next_attempt_at - now()) * 1000 as wait_ms from outbox where kind = 'mail' order by id",
  );
const waitUntilOutboxIsEmpty = () => waitUntil(async () => (await readWaiting()).length === 0);
const makeDue = () => api.sql("update outbox set next_attempt_at = now()");

test("a code arrives in both parts and in the subject, without external content or links", async () => {
  const email = await signUp();
  const mail = await waitForMailTo(email);
  const code = /^\d{6}/.exec(mail.subject ?? "")?.[0] ?? "none";
  expect(mail.text).toContain(code);
  expect(mail.html).toContain(code);
  expect(mail.from).toMatchObject({ name: "Underpass", address: "underpass@localhost" });
  expect(mail.headers).toContainEqual(
    expect.objectContaining({ key: "auto-submitted", value: "auto-generated" }),
  );
  expect(mail.html).not.toMatch(/<(img|link|script|iframe)|https?:|url\(/i);
  expect(mail.attachments).toEqual([]);
  await waitUntilOutboxIsEmpty();
  expect((await api.anonymous.post("/auth/verify-email-otp", { email, code })).status).toBe(200);
});

test("the link in a mail leads to the service's own origin", async () => {
  const email = await signUp();
  const code = (await waitForMailTo(email)).subject!.slice(0, 6);
  await api.anonymous.post("/auth/verify-email-otp", { email, code });
  await api.anonymous.post("/auth/signup", { email, password: PASSWORD });
  const mail = await waitUntil(() => Promise.resolve(findMailsTo(email)[1]));
  const links = [...`${mail.html}${mail.text}`.matchAll(/https?:\/\/[^\s"<]+/g)].map(
    ([url]) => url,
  );
  expect(links.length).toBeGreaterThan(0);
  for (const link of links)
    expect(new URL(link).origin).toBe(api.server.url.replace("127.0.0.1", "localhost"));
});

describe("a mail server that", () => {
  test.each<[string, MailServerBehavior | "is down", reason: string]>([
    ["is down", "is down", "ECONNREFUSED"],
    ["is temporarily unavailable", "451 4.3.0 try again later", "451 4.3.0 try again later"],
    ["denies relaying", "550 5.7.1 relaying denied", "550 5.7.1 relaying denied"],
    ["reports a full mailbox", "552 5.2.2 mailbox full", "552 5.2.2 mailbox full"],
    ["accepts connections and sends nothing", "is silent", "421 Server shutting down"],
  ])("%s delays no sign-up and loses no mail", async (_, behavior, reason) => {
    if (behavior === "is down") await smtp.stop();
    else smtp.behavior = behavior;
    const email = await signUp();
    if (behavior === "is silent") {
      await waitUntil(() => Promise.resolve(smtp.connections > 0));
      await smtp.stop();
    }
    await waitForLog("delivery_failed");
    const [line = ""] = /.*"delivery_failed".*/.exec(readLog()) ?? [];
    expect(JSON.parse(line)).toMatchObject({
      attempts: 0,
      cause: expect.stringContaining(reason),
    });
    expect(line).not.toContain(email);
    expect(await readWaiting()).toHaveLength(1);

    smtp.behavior = "accepts";
    if (behavior === "is down" || behavior === "is silent") await smtp.start();
    await makeDue();
    await api.runCron();
    const mail = await waitForMailTo(email);
    await waitUntilOutboxIsEmpty();
    await api.runCron();
    expect(findMailsTo(email)).toHaveLength(1);
    const code = mail.subject!.slice(0, 6);
    const verified = await api.anonymous.post("/auth/verify-email-otp", { email, code });
    expect(verified.status).toBe(200);
  });

  test.each([
    "550 5.1.1 no such user",
    "550 unknown",
    "553 5.1.3 bad address",
    "552 5.2.1 disabled",
  ] as const)("permanently refuses a mail with %j is not sent it again", async (behavior) => {
    smtp.behavior = behavior;
    await signUp();
    await waitForLog("mail_refused");
    await waitUntilOutboxIsEmpty();
    const { connections } = smtp;
    await api.runCron();
    expect(smtp.connections).toBe(connections);
  });

  test("refuses repeatedly is retried with growing delays, up to an hour", async () => {
    smtp.behavior = "451 4.3.0 try again later";
    await signUp();
    await waitForLog("delivery_failed");
    for (let attempt = 1; attempt <= 9; attempt++) {
      await makeDue();
      await api.runCron();
      const [row] = await readWaiting();
      const expected = Math.min(OUTBOX_RETRY_MAX_MS, OUTBOX_RETRY_MIN_MS * 2 ** (attempt - 1));
      expect(row?.attempts).toBe(attempt);
      expect(Number(row?.wait_ms)).toBeLessThanOrEqual(expected);
      expect(Number(row?.wait_ms)).toBeGreaterThan(expected / 2);
    }
    await waitUntil(() => Promise.resolve(/"delivery_failed".*"attempts":9/.test(readLog())));
  });

  test("is reachable again receives each waiting mail once, even with concurrent deliveries", async () => {
    await smtp.stop();
    const emails = await Promise.all(Array.from({ length: 12 }, signUp));
    await waitUntil(() => Promise.resolve(readLog().split("delivery_failed").length > 12));
    await smtp.start();
    await makeDue();
    await Promise.all(Array.from({ length: 20 }, () => api.runCron()));
    // The server also runs the job by itself, once a minute.
    await waitUntilOutboxIsEmpty();
    expect(emails.map((email) => findMailsTo(email).length)).toEqual(emails.map(() => 1));
  });
});

test("a mail that could not be delivered for a day is given up, and this is logged", async () => {
  await smtp.stop();
  await signUp();
  await waitForLog("delivery_failed");
  await api.sql("update outbox set created_at = now() - interval '25 hours'");
  await api.runCron();
  await waitUntilOutboxIsEmpty();
  await waitForLog("mail_given_up");
});
