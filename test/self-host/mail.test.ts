import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { createServer, type AddressInfo, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createMailer } from "../../self-host/gateway/mail.ts";
import type { Log } from "../../self-host/log.ts";

const mail = {
  to: "owner+x@example.com",
  from: "Underpass <underpass@localhost>",
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
  passOn() {},
};

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "underpass-test-"));
  logged = [];
});
afterEach(() => rm(dir, { recursive: true }));

async function post(smtpUrl: string | undefined, body: unknown): Promise<number> {
  const mailer = createMailer({ mailDir: join(dir, "mail"), smtpUrl, log });
  try {
    return (await mailer.answer(JSON.stringify(body))).status;
  } finally {
    mailer.close();
  }
}

test("without an SMTP server a mail is a file for its owner alone, and the log says where", async () => {
  expect(await post(undefined, mail)).toBe(200);
  const [file = ""] = await readdir(join(dir, "mail"));
  expect(file).toMatch(/^\d{4}-\d\d-\d\dT[\d-]+Z-owner\+x@example\.com\.eml$/);
  const path = join(dir, "mail", file);
  expect(logged).toEqual([`mail for ${mail.to} is in ${path}`]);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  const message = await readFile(path, "utf8");
  expect(message).toMatch(/^To: owner\+x@example\.com\r?$/m);
  expect(message).toContain("Your code is 123456");
});

test("an address never leads out of the directory", async () => {
  expect(await post(undefined, { ...mail, to: `"../../up"@example.com` })).toBe(400);
  expect(await post(undefined, { ...mail, to: "a/../b@example.com" })).toBeLessThanOrEqual(400);
  const names = await readdir(join(dir, "mail")).catch(() => []);
  for (const name of names) expect(name).not.toContain("/");
  expect(await readdir(dir)).toEqual(names.length > 0 ? ["mail"] : []);
});

test.each([{}, { ...mail, to: "nobody" }, { ...mail, text: undefined }])(
  "what is no mail is refused: %j",
  async (body) => {
    expect(await post(undefined, body)).toBe(400);
  },
);

test("with an SMTP server a mail is there once the server took it", async () => {
  const smtp = await startSmtp("250 taken");
  expect(await post(smtp.url, mail)).toBe(200);
  expect(smtp.received).toContain("RCPT TO:<owner+x@example.com>");
  expect(smtp.received.join("\n")).toContain("Your code is 123456");
  smtp.server.close();
});

test("a mail that the server refuses, or that has no server, is told as not delivered", async () => {
  const smtp = await startSmtp("550 no");
  expect(await post(smtp.url, mail)).toBe(503);
  smtp.server.close();
  expect(await post("smtp://127.0.0.1:1", mail)).toBe(503);
  expect(logged).toHaveLength(2);
});

/** As much of RFC 5321 as one delivery needs. */
async function startSmtp(
  verdict: string,
): Promise<{ url: string; received: string[]; server: Server }> {
  const received: string[] = [];
  const server = createServer((socket) => {
    let isData = false;
    socket.write("220 test\r\n");
    socket.on("error", () => {});
    createInterface({ input: socket }).on("line", (line) => {
      received.push(line);
      if (isData && line !== ".") return;
      const answer = isData ? verdict : line === "DATA" ? "354 go on" : "250 ok";
      isData = line === "DATA";
      socket.write(`${answer}\r\n`);
      if (line === "QUIT") socket.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`, received, server };
}
