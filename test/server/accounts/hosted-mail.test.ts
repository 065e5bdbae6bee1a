/** The hosted service's Worker sends emails itself, over SMTP. */
import type { SMTPServerOptions } from "smtp-server";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { newEmail, PASSWORD, waitUntil } from "../../harness/server/api.ts";
import { createCertificate } from "../../harness/fakes/certificate.ts";
import {
  startHosted,
  startHostedStorage,
  type HostedService,
  type HostedStorage,
} from "../../harness/server/hosted.ts";
import {
  startMailServer,
  type MailServer,
  type MailServerBehavior,
} from "../../harness/fakes/mail-server.ts";

const MAIL = {
  to: "to@example.com",
  subject: "A subject",
  text: "Some text.\n",
  html: "<p>Some</p>",
};
const CREDENTIALS = { user: "under@pass", password: "p:ä/%" };
const LOGIN = `${encodeURIComponent(CREDENTIALS.user)}:${encodeURIComponent(CREDENTIALS.password)}`;
const certificate = createCertificate();
const withPassword: SMTPServerOptions = {
  ...certificate,
  disabledCommands: [],
  authOptional: false,
  onAuth({ username, password }, _session, done) {
    const isCorrect = username === CREDENTIALS.user && password === CREDENTIALS.password;
    done(isCorrect ? null : new Error("wrong"), { user: isCorrect ? username : undefined });
  },
};

const readOutbox = (service: HostedService) => service.sql("select id from outbox");
const makeDue = (service: HostedService) =>
  service.sql("update outbox set next_attempt_at = now()");
const waitForLog = (service: HostedService, pattern: RegExp) =>
  waitUntil(() => Promise.resolve(pattern.test(service.output())));

let storage: HostedStorage;
beforeAll(async () => {
  storage = await startHostedStorage();
});
beforeEach(async () => {
  await storage.database.query("delete from outbox");
});
afterAll(() => storage[Symbol.asyncDispose]());

describe("an email", () => {
  let smtp: MailServer;
  let service: HostedService;
  beforeAll(async () => {
    smtp = await startMailServer();
    service = await startHosted({
      storage,
      settings: {
        SMTP_URL: `smtp://127.0.0.1:${smtp.port}`,
        MAIL_FROM: "Ünder, Pass <mail@underpass.example>",
      },
    });
  });
  beforeEach(async () => {
    await smtp.stop();
    await smtp.start();
    smtp.behavior = "accepts";
    smtp.mails.length = 0;
    smtp.connections = 0;
  });
  afterAll(async () => {
    await smtp.stop();
    await service[Symbol.asyncDispose]();
  });

  test("of a sign-up arrives with its code", async () => {
    const email = newEmail();
    const reply = await fetch(`${service.url}/auth/signup`, {
      method: "POST",
      headers: { "content-type": "application/json", "cf-connecting-ip": "192.0.2.1" },
      body: JSON.stringify({ email, password: PASSWORD }),
    });
    expect(reply.status).toBe(201);
    const [mail] = await waitUntil(() => Promise.resolve(smtp.mails.length > 0 && smtp.mails));
    const code = /^\d{6}/.exec(mail?.subject ?? "")?.[0] ?? "none";
    expect(mail).toMatchObject({ recipients: [email], to: [{ address: email }] });
    expect(mail?.from).toEqual({ name: "Ünder, Pass", address: "mail@underpass.example" });
    expect(mail?.text).toContain(code);
    expect(mail?.html).toContain(code);
    expect(mail?.messageId).toMatch(/^<[^@\s]+@underpass\.example>$/);
    expect(Math.abs(Date.parse(mail?.date ?? "") - Date.now())).toBeLessThan(60_000);
    expect(mail?.raw).toMatch(/^Auto-Submitted: auto-generated\r$/m);
    await waitUntil(async () => (await readOutbox(service)).length === 0);
  });

  test("arrives unchanged: accents, lines of dots, long lines", async () => {
    const text = `Grüße 🚇\n.\n..two\n${"long ".repeat(500)}\nFrom here on =20 it ends.\n`;
    const subject = `Einladung von ${"Größe 🚇 ".repeat(30)}`.trim();
    await service.queueMail({ ...MAIL, subject, text, html: `<p>${text}</p>` });
    await service.runCron();
    const [mail] = smtp.mails;
    expect(mail?.subject).toBe(subject);
    expect(mail?.text?.replaceAll("\r\n", "\n").trimEnd()).toBe(text.trimEnd());
    expect(mail?.html?.replaceAll("\r\n", "\n").trimEnd()).toBe(`<p>${text}</p>`);
    const lines = mail!.raw.split("\r\n");
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(998);
    expect(mail?.raw).toMatch(/^[\x00-\x7f]*$/);
  });

  test.each([
    "One\r\nBcc: eve@example.com\r\n\r\nbody",
    "One\nBcc: eve@example.com",
    "One\u2028Bcc: eve@example.com",
    "=?UTF-8?Q?=0D=0ABcc:_eve@example.com?=",
  ])("gets no header from its subject: %j", async (subject) => {
    await service.queueMail({ ...MAIL, subject });
    await service.runCron();
    const [mail] = smtp.mails;
    expect(mail?.bcc).toBeUndefined();
    expect(mail?.recipients).toEqual([MAIL.to]);
    expect(mail?.text?.trim()).toBe(MAIL.text.trim());
    expect(mail?.raw.split("\r\n\r\n")[0]).not.toMatch(/^Bcc/im);
  });

  test("gets no other recipient from its address", async () => {
    await service.queueMail({ ...MAIL, to: "to@example.com>\r\nRCPT TO:<eve@example.com" });
    await service.queueMail({ ...MAIL, to: "to@example.com, eve@example.com" });
    await service.runCron();
    expect(smtp.mails).toEqual([]);
    await waitForLog(service, /mail_refused/);
  });

  test.each<[string, MailServerBehavior | "is down"]>([
    ["is down", "is down"],
    ["fails temporarily", "451 4.3.0 try again later"],
    ["does not relay", "550 5.7.1 relaying denied"],
  ])("waits for a server that %s, and arrives once", async (_, behavior) => {
    if (behavior === "is down") await smtp.stop();
    else smtp.behavior = behavior;
    await service.queueMail(MAIL);
    await service.runCron();
    await waitForLog(service, /delivery_failed/);
    expect(service.output()).not.toContain(MAIL.to);
    expect(await readOutbox(service)).toHaveLength(1);

    smtp.behavior = "accepts";
    if (behavior === "is down") await smtp.start();
    await makeDue(service);
    await Promise.all(Array.from({ length: 20 }, () => service.runCron()));
    expect(smtp.mails).toHaveLength(1);
    expect(await readOutbox(service)).toEqual([]);
  });

  test("to an unknown recipient is given up at once", async () => {
    smtp.behavior = "550 5.1.1 unknown user";
    await service.queueMail(MAIL);
    await service.runCron();
    expect(await readOutbox(service)).toEqual([]);
  });

  test("is sent again after the server disconnects, and the Worker keeps running", async () => {
    smtp.behavior = "hangs up";
    await service.queueMail(MAIL);
    await service.runCron();
    await waitForLog(
      service,
      /the mail server closed the connection|Connection closed unexpectedly/,
    );
    expect(await readOutbox(service)).toHaveLength(1);
    expect((await fetch(`${service.url}/health`)).status).toBe(200);
  });

  test("times out when the server does not respond, without delaying other emails", async () => {
    const settings = { SMTP_URL: `smtp://127.0.0.1:${smtp.port}?timeout=2` };
    await using service = await startHosted({ storage, settings });
    smtp.behavior = "is silent";
    await service.queueMail(MAIL);
    await service.runCron();
    await waitForLog(service, /the mail server took too long/);
    expect(await readOutbox(service)).toHaveLength(1);
    smtp.behavior = "accepts";
    await service.queueMail({ ...MAIL, to: "other@example.com" });
    await service.runCron();
    expect(smtp.mails.map(({ recipients }) => recipients)).toEqual([["other@example.com"]]);
  });
});

describe("a mail server with a password", () => {
  /** This address counts as remote: a password requires TLS, and the certificate is verified. */
  const REMOTE_HOST = "0.0.0.0";

  test.each([
    ["smtps", "127.0.0.1", { secure: true }],
    ["smtp", "127.0.0.1", {}],
  ])("is used over TLS: %s://…@%s", async (scheme, host, options) => {
    await using smtp = await startMailServer({ ...withPassword, ...options });
    await using service = await startHosted({
      storage,
      settings: { SMTP_URL: `${scheme}://${LOGIN}@${host}:${smtp.port}` },
      trusted: certificate.cert,
    });
    await service.queueMail(MAIL);
    await service.runCron();
    expect(service.output()).toBe("");
    expect(smtp.mails[0]?.session).toMatchObject({ secure: true, user: CREDENTIALS.user });
  });

  test.each<[string, SMTPServerOptions, RegExp]>([
    ["offers no TLS", { disabledCommands: ["STARTTLS"], allowInsecureAuth: true }, /STARTTLS/],
    ["has a certificate that is not trusted", {}, /connection lost|certificate/i],
  ])("never receives the password if it is remote and %s", async (_, options, cause) => {
    const usernames: string[] = [];
    await using smtp = await startMailServer({
      ...withPassword,
      ...options,
      onAuth({ username }, _session, done) {
        usernames.push(username ?? "");
        done(null, { user: username });
      },
    });
    await using service = await startHosted({
      storage,
      settings: { SMTP_URL: `smtp://${LOGIN}@${REMOTE_HOST}:${smtp.port}` },
    });
    await service.queueMail(MAIL);
    await service.runCron();
    await waitForLog(service, cause);
    expect(usernames).toEqual([]);
    expect(await readOutbox(service)).toHaveLength(1);
  });
});

test("without a mail server an email waits, and the log says why", async () => {
  await using service = await startHosted({ storage, settings: {} });
  await service.queueMail(MAIL);
  await service.runCron();
  await waitForLog(service, /SMTP_URL is not set/);
  expect(await readOutbox(service)).toHaveLength(1);
});
