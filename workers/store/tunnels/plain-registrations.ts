/**
 * Registrations of HTTP tunnels without gates, domain and time to live: those of most agents. They take two requests to the
 * database instead of a session, so that the agents of one token wait for each other only while two statements run. All
 * others, and every refusal, are decided by `registrations.ts`, whose rules the statements repeat.
 */
import { hasGates } from "../../../protocol/schemas/tunnels/agent-gates.ts";
import { isHttpProtocol } from "../../../protocol/schemas/tunnels/tunnels.ts";
import type { Database } from "../database.ts";
import { serveExistingTunnel } from "./existing-tunnel.ts";
import { createServedTunnel } from "./new-tunnel.ts";
import type { RegisteredTunnel, RegistrationRequest } from "./registrations.ts";
import { findOwner } from "./tunnel-owner.ts";

/** @returns null when any condition does not hold; then `registerTunnel` decides. */
export async function registerPlainTunnel(
  db: Database,
  request: RegistrationRequest,
): Promise<RegisteredTunnel | null> {
  const { protocol, resumeTunnelId, ttlSeconds, domain } = request;
  if (!isHttpProtocol(protocol) || hasGates(request.gates) || domain !== null) return null;
  if (resumeTunnelId !== undefined || ttlSeconds !== undefined) return null;
  const owner = await findOwner(db, request);
  if (!owner) return null;
  return owner.isNewName
    ? createServedTunnel(db, request, owner)
    : serveExistingTunnel(db, request, owner);
}
