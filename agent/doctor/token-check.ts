/** Checks the agent's token: which names, tunnels and rates the server allows it. */
import { z } from "zod";
import { PresentedToken } from "../../protocol/schemas/tunnels/diagnostics.ts";
import { HOUR_MS } from "../../shared/time.ts";
import { explainError } from "../error-message.ts";
import { formatUsd } from "../output/format/format-usd.ts";
import { ok, problem, skipped, warning, type Outcome } from "./check.ts";
import type { Fetch } from "./http-check.ts";
import type { Route } from "./route.ts";
import { PROGRAM } from "../program.ts";
import { formatUpdateCommand } from "../update-advice.ts";

/** Without the plan, and perhaps without the relays, which servers up to 0.3 do not send. */
const DescribedToken = PresentedToken.extend({
  organization: z.object({ name: z.string() }),
  relays: PresentedToken.shape.relays.default([]),
});
type DescribedToken = z.infer<typeof DescribedToken>;

const EXPIRES_SOON_MS = HOUR_MS;

export async function checkToken(
  { server, token, renewal }: Route,
  fetch: Fetch,
  signal: AbortSignal,
): Promise<Outcome<DescribedToken>> {
  if (token === null) return skipped("this machine has no token for the server");
  const url = new URL("/agent/token", server);
  const tried = `asking ${server.host} about the token`;
  const authorization = `Bearer ${token.toString("base64")}`;
  let status: number;
  let body: unknown;
  try {
    const response = await fetch(url, { signal, headers: { authorization } });
    status = response.status;
    body = await response.json().catch(() => undefined);
  } catch (error) {
    const reason = signal.aborted ? "no answer in time" : explainError(error);
    return problem(tried, `the request failed: ${reason}`, `Run ${PROGRAM} doctor again.`);
  }
  if (status === 404) return skipped("this server is too old to describe a token");
  if (status === 401) {
    return problem(tried, `the server does not accept the token: ${getMessage(body)}`, renewal);
  }
  const parsed = DescribedToken.safeParse(body);
  if (status === 200 && !parsed.success && body !== undefined) {
    return problem(
      tried,
      "the server has another version, whose answer this agent can't read",
      `Upgrade the older of the two, or install the server's own agent: ${formatUpdateCommand(server.origin)}`,
    );
  }
  if (status !== 200 || !parsed.success) {
    return problem(
      tried,
      `the server answers ${status}: ${getMessage(body)}`,
      "Try again in a minute.",
    );
  }
  return describeToken(tried, parsed.data);
}

function describeToken(tried: string, token: DescribedToken): Outcome<DescribedToken> {
  const result = formatToken(token);
  if (!token.approved) {
    return problem(
      tried,
      `${result}; the organization is not approved`,
      "Ask the operator of the server to approve the organization.",
    );
  }
  if (token.overBudget) {
    return problem(
      tried,
      `${result}; this month's budget is used up`,
      "An owner or admin of the organization can raise the budget.",
    );
  }
  if (token.expiresAt * 1000 - Date.now() < EXPIRES_SOON_MS) {
    return warning(tried, result, `Get a new token before it expires: ${PROGRAM} login`, token);
  }
  return ok(tried, result, token);
}

function formatToken(token: DescribedToken): string {
  const { name, organization, allowedSubdomains, projectSlug, tunnelQuota } = token;
  const isForAnyName = allowedSubdomains.length === 0 || allowedSubdomains.includes("*");
  const names = isForAnyName ? "any name" : allowedSubdomains.join(", ");
  const { monthlyBudgetUsdCents: budget, spentUsdCents } = token;
  return [
    `"${name}" of the organization "${organization.name}" is valid until ${formatTime(token.expiresAt)}`,
    `for ${names}${projectSlug === null ? "" : ` in the project ${projectSlug}`}`,
    `${tunnelQuota} tunnels at once`,
    `${token.bandwidthLimitMbps} Mbit/s`,
    ...(budget === null
      ? []
      : [`${formatUsd(spentUsdCents)} of ${formatUsd(budget)} spent this month`]),
  ].join(", ");
}

function formatTime(seconds: number): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

function getMessage(body: unknown): string {
  const hasMessage = typeof body === "object" && body !== null && "message" in body;
  return hasMessage ? String(body.message) : "(no message)";
}
