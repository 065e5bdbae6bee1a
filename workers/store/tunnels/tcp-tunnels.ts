/** Tunnels of protocol `tcp`: which token's agent may serve one at its relay, and which tokens may connect to it. */
import { and, eq, sql } from "drizzle-orm";
import type { Database } from "../database.ts";
import { isOverBudget } from "../tokens/spending.ts";
import { checkUsable, type TokenRefusal } from "../tokens/token-refusal.ts";
import { tokens } from "../tables/tokens.ts";
import { relays } from "../tables/networks.ts";
import { organizations, projects } from "../tables/organizations.ts";
import { tunnels } from "../tables/tunnels.ts";
import type { TokenClaims } from "../tokens/tokens.ts";
import { replaceTunnelPort, type ReplacementRefusal } from "./tcp-ports.ts";
import { isDue, isUndeletedTunnelIn } from "./undeleted-tunnels.ts";

export type TunnelRefusal = "not_found" | "not_tcp" | "tunnel_expired" | "tunnel_stopped";

/** A tunnel, with what an agent needs to serve it at its relay. */
export interface ServedTunnel {
  id: string;
  relay: { id: string; url: string; host: string };
  port: number;
  allowedCidrs: string[] | null;
}

export type ServingRefusal =
  | TokenRefusal
  | TunnelRefusal
  | ReplacementRefusal
  | "served_by_another";

/**
 * Finds the tunnel that a token's agent serves, or served last. A port outside of the relay's range is replaced first: the
 * operator may have changed the range.
 *
 * @param unusablePort is replaced too, if it is the tunnel's and another one is free.
 * @returns "served_by_another" when the agent of another token of the organization serves it.
 */
export async function findServedTunnel(
  db: Database,
  token: TokenClaims,
  tunnelId: string,
  unusablePort: number | undefined,
): Promise<ServedTunnel | ServingRefusal> {
  const usable = await findUsableToken(db, token);
  if (typeof usable === "string") return usable;
  const row = await findTcpTunnel(db, token.orgId, { id: tunnelId });
  if (typeof row === "string") return row;
  if (row.connectedTokenId !== usable.id) return "served_by_another";
  // The port is reserved when its agent registers, which has not happened yet.
  if (row.publicPort === null || row.relay === null) return "served_by_another";
  const { id, relay, publicPort, allowedCidrs } = row;
  const isInRange = publicPort >= relay.firstPort && publicPort <= relay.lastPort;
  const current = { id, relay, port: publicPort, allowedCidrs };
  if (isInRange && publicPort !== unusablePort) return current;
  const wanted = { relayId: relay.id, unusablePort };
  const replaced = await replaceTunnelPort(db, { orgId: token.orgId, id, ...wanted });
  // The unusable port may become usable.
  const hasNoOther = replaced === "exhausted" || replaced === "share_used";
  if (hasNoOther && isInRange) return current;
  if (typeof replaced === "string") return replaced;
  return { id, relay, port: replaced.publicPort!, allowedCidrs: replaced.allowedCidrs };
}

/** A tunnel that a client of `underpass connect` asks for. */
export interface StreamTarget {
  id: string;
  localPort: number;
  subdomain: string;
  projectSlug: string;
}

/** @param which the tunnel's id or its subdomain. */
export async function findStreamTarget(
  db: Database,
  token: TokenClaims,
  which: { id: string } | { subdomain: string },
): Promise<StreamTarget | TokenRefusal | TunnelRefusal> {
  const usable = await findUsableToken(db, token);
  if (typeof usable === "string") return usable;
  return findTcpTunnel(db, token.orgId, which);
}

async function findUsableToken(
  { query }: Database,
  { orgId, nonce }: TokenClaims,
): Promise<{ id: string } | TokenRefusal> {
  const [token] = await query
    .select({
      id: tokens.id,
      revokedAt: tokens.revokedAt,
      approvalStatus: organizations.approvalStatus,
    })
    .from(tokens)
    .innerJoin(organizations, eq(organizations.id, tokens.orgId))
    .where(and(eq(tokens.orgId, orgId), eq(tokens.nonce, nonce), eq(tokens.kind, "agent")));
  const usable = checkUsable(token);
  if (typeof usable === "string") return usable;
  return (await isOverBudget(query, usable.id)) ? "over_budget" : { id: usable.id };
}

async function findTcpTunnel(
  { query }: Database,
  orgId: string,
  which: { id: string } | { subdomain: string },
) {
  const isWanted =
    "id" in which ? eq(tunnels.id, which.id) : eq(tunnels.subdomain, which.subdomain);
  const [row] = await query
    .select({
      id: tunnels.id,
      localPort: tunnels.localPort,
      subdomain: tunnels.subdomain,
      projectSlug: projects.slug,
      protocol: tunnels.protocol,
      publicPort: tunnels.publicPort,
      allowedCidrs: tunnels.allowedCidrs,
      connectedTokenId: tunnels.connectedTokenId,
      stoppedAt: tunnels.stoppedAt,
      isExpired: sql<boolean>`${tunnels.status} = 'expired' or ${isDue}`,
      relay: relays,
    })
    .from(tunnels)
    .innerJoin(projects, eq(projects.id, tunnels.projectId))
    .leftJoin(relays, eq(relays.id, tunnels.relayId))
    .where(and(isUndeletedTunnelIn(orgId), isWanted))
    // Several tunnels can have had a subdomain; at most one of them has not expired.
    .orderBy(sql`${tunnels.status} = 'expired'`)
    .limit(1);
  if (!row) return "not_found";
  if (row.protocol !== "tcp") return "not_tcp";
  if (row.isExpired) return "tunnel_expired";
  return row.stoppedAt ? "tunnel_stopped" : row;
}
