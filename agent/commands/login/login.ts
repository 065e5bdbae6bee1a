/**
 * `underpass login`: gets a capability token for this machine with the device flow (RFC 8628), or, on a server that has no
 * owner yet, with the one-time code that the server prints.
 */
import { hostname } from "node:os";
import { fetch, type Dispatcher } from "undici";
import { z } from "zod";
import { DEVICE_POLL_MAX_SECONDS } from "../../../protocol/schemas/accounts/devices.ts";
import { openInBrowser } from "../../output/browser.ts";
import { printError, printLine } from "../../output/output.ts";
import { rejectExtraArguments, UsageError } from "../../options.ts";
import { createDispatcher } from "../../outgoing/dispatcher.ts";
import { findServerEndpoint } from "../../server-access.ts";
import {
  ANSWER_MAX_MS,
  AnyErrorBody,
  getErrorBodyMessage,
  ignoreSyntaxError,
} from "../../service-api.ts";
import { prepareCredentials, saveCredential } from "../../settings.ts";
import { SettingsError, UnreachableServerError } from "../../settings-error.ts";
import { ask } from "../ask.ts";
import type { Input } from "../command.ts";
import type { LOGIN } from "../table/login.ts";
import { PROGRAM } from "../../program.ts";

const DeviceCode = z.object({
  device_code: z.string(),
  user_code: z.string(),
  verification_uri: z.string(),
  verification_uri_complete: z.string().optional(),
  interval: z.number(),
  expires_in: z.number(),
});
const IssuedToken = z.object({ wire_bytes_b64: z.string(), label: z.string() });
const FirstAccount = IssuedToken.extend({ email: z.string(), password: z.string().optional() });

/** How much longer every later interval is after the server has answered `slow_down` (RFC 8628, section 3.5). */
const SLOW_DOWN_MS = 5_000;
/** The error codes after which a later poll can succeed. */
const TEMPORARY_FAILURES = new Set([
  "authorization_pending",
  "rate_limited",
  "unavailable",
  "internal",
  "not_ready",
]);

export async function run({ values, positionals }: Input<typeof LOGIN.options>): Promise<number> {
  rejectExtraArguments(positionals);
  if (values.email !== undefined && values.setup === undefined)
    throw new UsageError("--email needs --setup");
  const { server, authorities } = await findServerEndpoint(values);
  await prepareCredentials();
  const client = { server, dispatcher: createDispatcher(authorities) };
  const label = values.label ?? hostname();
  const issued =
    values.setup === undefined
      ? await runDeviceFlow(client, label)
      : await createFirstAccount(client, values.setup, values.email, label);
  if (!issued) return 1;
  const token = Buffer.from(issued.wire_bytes_b64, "base64");
  const path = await saveCredential(server, token, issued.label);
  printLine(`This machine can now open tunnels. Its token is in ${path}.`);
  const caFile = values["ca-file"] === undefined ? "" : ` --ca-file ${values["ca-file"]}`;
  printLine(`Next: ${PROGRAM} http 3000${caFile}`);
  return 0;
}

/** The server before this machine has a token for it. */
interface LoginClient {
  server: URL;
  dispatcher: Dispatcher;
}

async function runDeviceFlow(
  client: LoginClient,
  label: string,
): Promise<z.infer<typeof IssuedToken> | null> {
  const started = await expectOk(post(client, "/auth/cli/start", { label }));
  const code = parseAnswer(DeviceCode, started, client.server);
  const address = code.verification_uri_complete ?? code.verification_uri;
  const lines = [
    "Open this address in a browser and approve this machine:",
    "",
    `    ${address}`,
    "",
  ];
  lines.forEach(printLine);
  if (process.stdout.isTTY && URL.canParse(address)) await openInBrowser(new URL(address));
  printLine(`The page should show the code ${code.user_code}. Waiting for your approval…`);
  const expiresAtMs = Date.now() + code.expires_in * 1000;
  let intervalMs = code.interval * 1000;
  while (Date.now() < expiresAtMs) {
    const polled = await pollOnce(client, code.device_code);
    if (polled?.ok) return parseAnswer(IssuedToken, polled.body, client.server);
    const failure = AnyErrorBody.safeParse(polled?.body).data;
    if (failure?.error === "expired") break;
    if (failure?.error === "access_denied") return fail("the login was denied in the browser");
    if (failure?.error === "slow_down") intervalMs += SLOW_DOWN_MS;
    else if (failure && !TEMPORARY_FAILURES.has(failure.error))
      return fail(getErrorBodyMessage(failure));
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
  }
  return fail(`the code has expired or was used already; run \`${PROGRAM} login\` again`);
}

/** @returns null when no answer arrived: a proxy or the server may have ended the request while it waited. */
async function pollOnce(client: LoginClient, deviceCode: string) {
  try {
    const body = { device_code: deviceCode };
    return await post(client, "/auth/cli/poll", body, DEVICE_POLL_MAX_SECONDS * 1000);
  } catch {
    return null;
  }
}

const EMAIL_QUESTION = 'Your email address (press Enter to use "owner"): ';

async function createFirstAccount(
  client: LoginClient,
  code: string,
  email: string | undefined,
  label: string,
): Promise<z.infer<typeof IssuedToken> | null> {
  const isInteractive = email === undefined && process.stdin.isTTY;
  const answer = isInteractive ? await ask(EMAIL_QUESTION) : email;
  if (answer === null) return fail("no email address was entered, so no account was created");
  // Without one, the server chooses the address.
  const response = await post(client, "/setup", { code, label, email: answer || undefined });
  if (!response.ok)
    return fail(getErrorBodyMessage(parseAnswer(AnyErrorBody, response.body, client.server)));
  const account = parseAnswer(FirstAccount, response.body, client.server);
  printLine(`The owner's account is ${account.email}.`);
  if (account.password !== undefined) {
    printLine(`Its password is shown only once: ${account.password}`);
  }
  return account;
}

/**
 * @param waitMs how long the server may hold the request open.
 * @throws UnreachableServerError
 */
async function post({ server, dispatcher }: LoginClient, path: string, body: unknown, waitMs = 0) {
  const response = await fetch(new URL(path, server).href, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
    dispatcher,
    signal: AbortSignal.timeout(waitMs + ANSWER_MAX_MS),
  }).catch((error: unknown) => {
    throw new UnreachableServerError(server, error);
  });
  // An answer that is not JSON comes from another kind of server: `parseAnswer` reports it.
  const answer: unknown = await response.json().catch(ignoreSyntaxError);
  return { server, ok: response.ok, body: answer };
}

async function expectOk(request: ReturnType<typeof post>): Promise<unknown> {
  const { server, ok, body } = await request;
  if (!ok) throw new SettingsError(getErrorBodyMessage(parseAnswer(AnyErrorBody, body, server)));
  return body;
}

/** @throws SettingsError when the answer is not one of an Underpass server. */
function parseAnswer<Schema extends z.ZodType>(
  schema: Schema,
  answer: unknown,
  server: URL,
): z.output<Schema> {
  const { data } = schema.safeParse(answer);
  if (data !== undefined) return data;
  throw new SettingsError(`${server.origin} is not an Underpass server; check the address`);
}

/** Prints why the login failed. @returns null, for the caller to return. */
function fail(text: string): null {
  printError(text);
  return null;
}
