/** Asks the API for the ticket that opens a relay: of a tunnel that this agent serves, or of a network. */
import { EnvHttpProxyAgent, fetch } from "undici";
import { z } from "zod";
import { RelayAccess } from "../../protocol/schemas/networks.ts";
import { RejectionError } from "../tunnel-connection.ts";

const ANSWER_MAX_MS = 15_000;

const Failure = z.object({ error: z.string(), message: z.string() });

let dispatcher: EnvHttpProxyAgent | undefined;

/**
 * @param path `/tunnels/{id}/relay-ticket` or `/private-networks/{id}/relay-ticket`
 * @throws Rejected when asking again would change nothing; any other error is worth another try.
 */
export async function fetchRelayAccess(
  server: URL,
  token: Buffer,
  path: string,
  signal: AbortSignal,
): Promise<RelayAccess> {
  dispatcher ??= new EnvHttpProxyAgent();
  const response = await fetch(new URL(path, server).href, {
    method: "POST",
    headers: { authorization: `Bearer ${token.toString("base64")}`, accept: "application/json" },
    redirect: "manual",
    signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MAX_MS)]),
    dispatcher,
  });
  const body: unknown = await response.json().catch(() => undefined);
  if (response.status >= 400) throw refusal(response.status, body);
  const access = RelayAccess.safeParse(body);
  if (!access.success) throw new Error(`${server.origin} is not an Underpass server`);
  return access.data;
}

function refusal(status: number, body: unknown): Error {
  const failure = Failure.safeParse(body).data;
  const message = failure?.message ?? `the server answered ${status}`;
  // `conflict`: the agent is not the one that serves at the moment, which may change.
  const mayChange = status === 429 || status >= 500 || failure?.error === "conflict";
  return mayChange
    ? new Error(message)
    : new RejectionError(failure?.error ?? String(status), message);
}
