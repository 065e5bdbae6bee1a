/**
 * `underpass login`: gets this machine a token of its own, by the device flow (RFC 8628) or, on a server
 * that has no account yet, by the one-time code that the server prints.
 */
import { hostname } from "node:os";
import { createInterface } from "node:readline/promises";
import { EnvHttpProxyAgent, fetch } from "undici";
import { z } from "zod";
import { parseOptions, UsageError, type OptionSpec } from "../options.ts";
import { findServer, saveCredential } from "../settings.ts";

export const loginOptions = {
  server: { kind: "text", value: "URL", help: "the Underpass server" },
  setup: {
    kind: "text",
    value: "CODE",
    help: "the code a new server prints: makes its first account",
  },
  email: { kind: "text", value: "ADDRESS", help: "with --setup: the account's e-mail address" },
  label: {
    kind: "text",
    value: "NAME",
    help: "what this machine is called (default: its host name)",
  },
} as const satisfies Record<string, OptionSpec>;

const Started = z.object({
  device_code: z.string(),
  user_code: z.string(),
  verification_uri: z.string(),
  verification_uri_complete: z.string().optional(),
  interval: z.number(),
  expires_in: z.number(),
});
const Collected = z.object({ wire_bytes_b64: z.string(), label: z.string() });
const SetUp = Collected.extend({ email: z.string(), password: z.string().optional() });
const Failure = z.object({ error: z.string(), message: z.string() });

/** @returns the exit code. */
export async function login(args: string[]): Promise<number> {
  const { values, positionals } = parseOptions(args, loginOptions);
  if (positionals.length > 0) throw new UsageError(`login takes no ${positionals[0]}`);
  const server = await findServer(values.server);
  const label = values.label ?? hostname();
  const collected =
    values.setup === undefined
      ? await deviceFlow(server, label)
      : await firstAccount(server, values.setup, values.email, label);
  if (!collected) return 1;
  const token = Buffer.from(collected.wire_bytes_b64, "base64");
  const path = await saveCredential(server, token, collected.label);
  say(`This machine may open tunnels now; its token is in ${path}.`);
  say("Next: underpass http 3000");
  return 0;
}

async function deviceFlow(server: URL, label: string): Promise<z.infer<typeof Collected> | null> {
  const started = Started.parse(await expectOk(post(server, "/auth/cli/start", { label })));
  const where = started.verification_uri_complete ?? started.verification_uri;
  say(`Open this address and approve this machine:\n\n    ${where}\n`);
  say(`It should show the code ${started.user_code}. Waiting…`);
  const until = Date.now() + started.expires_in * 1000;
  let intervalMs = started.interval * 1000;
  while (Date.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
    const polled = await post(server, "/auth/cli/poll", { device_code: started.device_code });
    if (polled.ok) return Collected.parse(polled.body);
    const failure = Failure.parse(polled.body);
    if (failure.error === "slow_down") intervalMs += started.interval * 1000;
    else if (failure.error !== "authorization_pending") return fail(failure.message);
  }
  return fail("the code has expired; run underpass login again");
}

async function firstAccount(
  server: URL,
  code: string,
  email: string | undefined,
  label: string,
): Promise<z.infer<typeof Collected> | null> {
  const answers = email === undefined && process.stdin.isTTY ? await ask() : { email };
  const done = await post(server, "/setup", { code, label, ...answers });
  if (!done.ok) return fail(Failure.parse(done.body).message);
  const account = SetUp.parse(done.body);
  say(`The owner's account is ${account.email}.`);
  if (account.password !== undefined) {
    say(`Its password, shown only now: ${account.password}`);
  }
  return account;
}

/** An empty answer leaves the choice to the server. */
async function ask(): Promise<{ email?: string }> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const email = (await terminal.question("Your e-mail address (empty: owner): ")).trim();
  terminal.close();
  return email === "" ? {} : { email };
}

async function post(server: URL, path: string, body: unknown) {
  const answer = await fetch(new URL(path, server), {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
    dispatcher: new EnvHttpProxyAgent(),
  });
  return { ok: answer.ok, body: await answer.json() };
}

async function expectOk(answering: ReturnType<typeof post>): Promise<unknown> {
  const { ok, body } = await answering;
  if (!ok) throw new Error(Failure.parse(body).message);
  return body;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function fail(text: string): null {
  process.stderr.write(`underpass: ${text}\n`);
  return null;
}
