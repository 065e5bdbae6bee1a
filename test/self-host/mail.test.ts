import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import PostalMime from "postal-mime";
import type { SMTPServerOptions } from "smtp-server";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createMailer } from "../../self-host/gateway/mail.ts";
import type { Log } from "../../self-host/log.ts";
import { parseMailbox } from "../../workers/config/mailbox.ts";
import { parseSmtpUrl, type SmtpServer } from "../../workers/config/smtp-server.ts";
import { startMailServer } from "../harness/fakes/mail-server.ts";

const mail = {
  to: "owner+x@example.com",
  from: { name: "Underpass", address: "underpass@localhost" },
  subject: "Grüße: 123456",
  text: "Your code is 123456",
  html: "<p>Your code is 123456</p>",
};

let dir: string;
let logged: string[];
const log: Log = {
  info: (message) => logged.push(message),
  warn: (message) => logged.push(message),
  error: (message) => logged.push(message),
  forward() {},
};

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "underpass-test-"));
  logged = [];
});
afterEach(() => rm(dir, { recursive: true }));

async function send(smtpServer: SmtpServer | undefined, body: unknown) {
  const mailer = createMailer({ mailDir: join(dir, "mail"), smtpServer, log });
  try {
    return await mailer.handle(JSON.stringify(body));
  } finally {
    mailer.close();
  }
}

async function post(smtpServer: SmtpServer | undefined, body: unknown): Promise<number> {
  return (await send(smtpServer, body)).status;
}

test("without an SMTP server a mail is written to a file that only its owner can read, and its path is logged", async () => {
  expect(await post(undefined, mail)).toBe(200);
  const [file = ""] = await readdir(join(dir, "mail"));
  expect(file).toMatch(/^\d{4}-\d\d-\d\dT[\d-]+Z-owner\+x@example\.com\.eml$/);
  const path = join(dir, "mail", file);
  expect(logged).toEqual([`mail for ${mail.to} is in ${path}`]);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  const message = await readFile(path, "utf8");
  expect(message).toMatch(/^To: owner\+x@example\.com\r?$/m);
  expect(message).toMatch(/^Auto-Submitted: auto-generated\r?$/m);
  expect(message).toContain("Your code is 123456");
});

test("all of many simultaneous mails to one address are stored", async () => {
  const statuses = await Promise.all(Array.from({ length: 50 }, () => post(undefined, mail)));
  expect(statuses).toEqual(Array(50).fill(200));
  const names = await readdir(join(dir, "mail"));
  expect(names.filter((name) => name.endsWith(`-${mail.to}.eml`))).toHaveLength(50);
  expect(names).toHaveLength(50);
});

test("a mail address can't place the file outside the directory", async () => {
  expect(await post(undefined, { ...mail, to: `"../../up"@example.com` })).toBe(400);
  expect(await post(undefined, { ...mail, to: "a/../b@example.com" })).toBeLessThanOrEqual(400);
  const names = await readdir(join(dir, "mail")).catch(() => []);
  expect(await readdir(dir)).toEqual(names.length > 0 ? ["mail"] : []);
});

test.each([{}, { ...mail, to: "nobody" }, { ...mail, text: undefined }])(
  "an invalid mail is refused: %j",
  async (body) => {
    expect(await post(undefined, body)).toBe(400);
  },
);

describe("over SMTP", () => {
  const buildSmtpServer = (port: number, changes: Partial<SmtpServer> = {}): SmtpServer => ({
    host: "127.0.0.1",
    port,
    implicitTls: false,
    credentials: undefined,
    isLoopback: true,
    timeoutMs: 25_000,
    ...changes,
  });

  test("a mail is delivered unchanged when the request succeeds", async () => {
    await using smtp = await startMailServer();
    const text = `Grüße\n.\n..two\n${"long ".repeat(500)}\nFrom here on\n`;
    expect(await post(buildSmtpServer(smtp.port), { ...mail, text })).toBe(200);
    const [received] = smtp.mails;
    expect(received).toMatchObject({ subject: mail.subject, recipients: [mail.to] });
    expect(received?.text?.trimEnd()).toBe(text.trimEnd());
    expect(received?.from).toMatchObject({ name: "Underpass", address: "underpass@localhost" });
    expect(Math.max(...received!.raw.split("\r\n").map((line) => line.length))).toBeLessThan(998);
  });

  test("user input can't add a header or a recipient", async () => {
    await using smtp = await startMailServer();
    const from = { name: 'Eve" <eve@example.com>\r\nBcc: eve@example.com', address: "a@localhost" };
    const subject = "One\r\nBcc: eve@example.com\r\n\r\nbody";
    expect(await post(buildSmtpServer(smtp.port), { ...mail, from, subject })).toBe(200);
    const [received] = smtp.mails;
    expect(received?.bcc).toBeUndefined();
    expect(received?.from?.address).toBe("a@localhost");
    expect(received?.recipients).toEqual([mail.to]);
    expect(received?.text).toContain(mail.text);
  });

  test.each(["=?utf-8?Q?https=3A//evil.test?=", "a =?utf-8?B?aGVsbG8=?= b", "ü =?utf-8?Q?x?="])(
    "the subject %j is shown as it is written",
    async (subject) => {
      await using smtp = await startMailServer();
      expect(await post(buildSmtpServer(smtp.port), { ...mail, subject })).toBe(200);
      expect(smtp.mails[0]?.subject).toBe(subject);
      expect(await post(undefined, { ...mail, subject })).toBe(200);
      const [file = ""] = await readdir(join(dir, "mail"));
      const stored = await PostalMime.parse(await readFile(join(dir, "mail", file)));
      expect(stored.subject).toBe(subject);
    },
  );

  test.each([
    ["451 4.3.0 later", 503],
    ["550 5.7.1 relaying denied", 503],
    ["550 5.1.1 no such user", 422],
  ] as const)("the SMTP reply %j is answered with %i", async (behavior, status) => {
    await using smtp = await startMailServer();
    smtp.behavior = behavior;
    expect(await post(buildSmtpServer(smtp.port), mail)).toBe(status);
    expect(logged).toHaveLength(status === 422 ? 1 : 0);
  });

  test("an unreachable server is reported as not delivered, with the reason", async () => {
    const { status, body } = await send(buildSmtpServer(1), mail);
    expect(status).toBe(503);
    expect(JSON.parse(body)).toEqual({ message: expect.stringContaining("ECONNREFUSED") });
  });

  test("a delivery to a silent server times out", async () => {
    await using smtp = await startMailServer();
    smtp.behavior = "is silent";
    const mailer = createMailer({
      mailDir: dir,
      smtpServer: buildSmtpServer(smtp.port, { timeoutMs: 500 }),
      log,
    });
    // More than the number of connections, so that some mails wait for others.
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => mailer.handle(JSON.stringify(mail))),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 503));
    // A connection's own limit can end first. The mails that wait for a connection have none.
    const reasons = answers.map(({ body }) => (JSON.parse(body) as { message: string }).message);
    expect(reasons).toContain("the mail server took too long");
    expect(reasons.join()).not.toContain("aborted");

    smtp.behavior = "accepts";
    const next = await mailer.handle(JSON.stringify({ ...mail, to: "next@example.com" }));
    expect(next.status).toBe(200);
    expect(smtp.mails.map(({ recipients }) => recipients)).toEqual([["next@example.com"]]);
    mailer.close();
  });

  describe("with a password", () => {
    const credentials = { user: "under@pass", password: "p:ä/%" };
    const withPassword: SMTPServerOptions = {
      disabledCommands: [],
      authOptional: false,
      onAuth({ username, password }, _session, done) {
        const isCorrect = username === credentials.user && password === credentials.password;
        done(isCorrect ? null : new Error("wrong"), { user: isCorrect ? username : undefined });
      },
    };

    test("it is sent to a server on this machine with any certificate", async () => {
      await using smtp = await startMailServer(withPassword);
      expect(await post(buildSmtpServer(smtp.port, { credentials }), mail)).toBe(200);
      expect(smtp.mails[0]?.session).toMatchObject({ secure: true, user: credentials.user });
    });

    test.each<[string, SMTPServerOptions]>([
      ["that offers no TLS", { ...withPassword, hideSTARTTLS: true, allowInsecureAuth: true }],
      ["with an untrusted certificate", withPassword],
    ])("it is sent to no remote server %s", async (_, options) => {
      const usernames: string[] = [];
      await using smtp = await startMailServer({
        ...options,
        onAuth({ username }, _session, done) {
          usernames.push(username ?? "");
          done(null, { user: username });
        },
      });
      const remoteServer = buildSmtpServer(smtp.port, { credentials, isLoopback: false });
      expect(await post(remoteServer, mail)).toBe(503);
      expect(usernames).toEqual([]);
    });
  });
});

test.each<[string, Partial<SmtpServer>]>([
  ["smtp://mail.example.com", { port: 587, implicitTls: false, credentials: undefined }],
  ["smtps://mail.example.com", { port: 465, implicitTls: true }],
  ["smtp://[::1]:2525", { host: "::1", port: 2525, isLoopback: true }],
  ["smtp://localhost:25", { isLoopback: true }],
  ["smtp://127.evil.example", { isLoopback: false }],
  ["smtp://mail.example.com?timeout=5", { port: 587, timeoutMs: 5_000 }],
  ["smtps://a%40b:p%3Aw%2F%25%C3%A4@h", { credentials: { user: "a@b", password: "p:w/%ä" } }],
])("SMTP_URL=%s is understood", (url, server) => {
  expect(parseSmtpUrl(url)).toMatchObject(server);
});

test.each(["http://mail.example.com", "smtp://mail.example.com?timeout=0", "smtp://h?timeout=26"])(
  "SMTP_URL=%s is refused",
  (url) => {
    expect(parseSmtpUrl(url)).toBeNull();
  },
);

test.each([
  ["Underpass <mail@underpass.example>", { name: "Underpass", address: "mail@underpass.example" }],
  ['"Underpass, Inc." <a@b>', { name: "Underpass, Inc.", address: "a@b" }],
  ["plain@example.com", { name: "", address: "plain@example.com" }],
  ["Two <a@b> <c@d>", null],
  ["no address", null],
  ["Break\r\nBcc: x@y <a@b>", null],
  ["Name <a b@c>", null],
  ["Name <a@b>, Other <c@d>", null],
])("MAIL_FROM=%j is read as %j", (text, mailbox) => {
  expect(parseMailbox(text)).toEqual(mailbox);
});
