/**
 * Registers an agent for an existing tunnel that no agent serves, in two statements: such as after a restart of the agent.
 */
import { and, eq, ne, or } from "drizzle-orm";
import type { Database } from "../database.ts";
import { tunnels } from "../tables/tunnels.ts";
import {
  getServedColumns,
  type RegisteredTunnel,
  type RegistrationRequest,
} from "./registrations.ts";
import { buildOwnerLock, isAdmitted, type TunnelOwner } from "./tunnel-owner.ts";
import { isServableIn } from "./undeleted-tunnels.ts";

/** @returns null when any condition does not hold. */
export async function serveExistingTunnel(
  { query }: Database,
  request: RegistrationRequest,
  owner: TunnelOwner,
): Promise<RegisteredTunnel | null> {
  const { orgId, tokenId, projectId, plan } = owner;
  const { label } = request;
  const [, [tunnel]] = await query.batch([
    query.execute(buildOwnerLock(owner)),
    // A statement of its own, which sees what was committed before the locks were acquired.
    query
      .update(tunnels)
      .set(getServedColumns(request, tokenId))
      .where(
        and(
          isServableIn(orgId),
          eq(tunnels.subdomain, label),
          eq(tunnels.projectId, projectId),
          ne(tunnels.protocol, "tcp"),
          or(eq(tunnels.agentConnected, false), eq(tunnels.connectedTokenId, tokenId)),
          isAdmitted(owner, label),
        ),
      )
      .returning(),
  ]);
  return tunnel ? { tunnel: { ...tunnel, relayHost: null }, plan } : null;
}
