/** The gates that an agent sets with its connection, before any visitor can reach its local server. */
import { z } from "zod";
import { toBase64Url, toUtf8 } from "../../../shared/bytes.ts";
import { TunnelPassword } from "../access/basic-auth.ts";
import { TrafficPolicy } from "../access/policies.ts";

/**
 * A header of the connect request: base64url of the JSON of `AgentGates`. It is not a query parameter, because proxies log
 * URLs.
 */
export const AGENT_GATES_HEADER = "underpass-agent-gates";
/** The header lines of a request may have 128 KiB together. */
export const AGENT_GATES_MAX_CHARS = 64 * 1024;

/** A field that is left out leaves the tunnel as it is. */
export const AgentGates = z.object({
  /** null removes the password. */
  basicAuth: TunnelPassword.nullable().optional(),
  /** null removes the policy. */
  policy: TrafficPolicy.nullable().optional(),
});
export type AgentGates = z.output<typeof AgentGates>;

/** Whether any gate is set or removed. */
export function hasGates({
  basicAuth,
  policy,
}: Partial<Record<keyof AgentGates, unknown>>): boolean {
  return basicAuth !== undefined || policy !== undefined;
}

/** @returns null when the header would be too long. */
export function formatAgentGates(gates: AgentGates): string | null {
  const text = toBase64Url(toUtf8(JSON.stringify(gates)));
  return text.length > AGENT_GATES_MAX_CHARS ? null : text;
}
