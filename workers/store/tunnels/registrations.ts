/** An agent comes with a token and asks for a name: the rows' side of that, decided in one transaction. */
import { and, eq, lt, ne, sql } from "drizzle-orm";
import { TUNNEL_STATUS_FRESH_MS } from "../../limits.ts";
import type { Plan } from "../../../protocol/plans.ts";
import { getRequestedExpiry, getTunnelExpiry } from "../billing/plans.ts";
import type { OrganizationActor } from "../audit.ts";
import type { Change, Database } from "../database.ts";
import { enqueueSettings } from "../access/gates.ts";
import type { PortRefusal } from "../networks/relay-ports.ts";
import { findOverBudget } from "../tokens/spending.ts";
import { organizations } from "../tables/organizations.ts";
import { tokens } from "../tables/tokens.ts";
import { tunnels, type TunnelRow } from "../tables/tunnels.ts";
import { reserveTunnelPort, type TunnelWithRelay } from "./tcp-ports.ts";
import { expireTunnel, findProjectId, insertTunnel } from "./tunnels.ts";
import { liveTunnels } from "./live-tunnels.ts";

export interface RegistrationRequest {
  orgId: string;
  tokenNonce: string;
  ip: string;
  name: string;
  /** The name with the project's suffix. */
  label: string;
  projectSlug: string;
  protocol: TunnelRow["protocol"];
  localPort: number;
  ttlSeconds: number | undefined;
  /** The tunnel that the agent served before. */
  resumeTunnelId: string | undefined;
  /** Of protocol `tcp`: the public port that the agent wants. */
  remotePort: number | undefined;
  /** Of protocol `tcp`: blocks that visitors may come from. Left out: as they are. */
  allowedCidrs: string[] | undefined;
}

export type RegistrationRefusal =
  | "token_unknown"
  | "token_revoked"
  | "over_budget"
  | "organization_not_approved"
  | "project_not_found"
  | "tunnel_deleted"
  | "tunnel_expired"
  | "tunnel_stopped"
  | "duplicate_name"
  /** The name has a tunnel that carries HTTP, and the agent TCP, or the reverse. */
  | "other_protocol"
  | PortRefusal
  | "served_by_another"
  | "quota_exceeded";

/** `plan` is the organization's. */
export interface Registered {
  ok: TunnelWithRelay;
  plan: Plan;
}

export type Registration =
  | Registered
  | {
      refuse: RegistrationRefusal;
      /** Tunnels whose rows led to it and may be out of date: their objects know better. */
      staleTunnelIds: string[];
    };

/**
 * Finds or makes the tunnel. From here on its row says that the agent is connected, so that of two agents
 * who want a token's last place one is refused; the tunnel's object corrects it when that turns out wrong.
 */
export function registerTunnel(db: Database, request: RegistrationRequest): Promise<Registration> {
  return db.transaction(async (change) => {
    const { tx } = change;
    // Before the token's row: whoever deletes a project locks them in this order.
    const projectId = await findProjectId(tx, request.orgId, request.projectSlug);
    const token = await lockToken(change, request);
    if (typeof token === "string") return refused(token);
    if (projectId === null) return refused("project_not_found");
    if ((await findOverBudget(tx, eq(tokens.id, token.id))).length > 0) {
      return refused("over_budget");
    }

    const existing = await lockLiveTunnel(change, request);
    if (existing?.stoppedAt) return refused("tunnel_stopped");
    const isOther = existing?.id !== request.resumeTunnelId;
    const over = isOther ? await findResumeError(change, request) : null;
    if (over !== null) return refused(over);

    const isTaken = and(
      eq(tunnels.connectedTokenId, token.id),
      eq(tunnels.agentConnected, true),
      ne(tunnels.subdomain, request.label),
    );
    if ((await tx.$count(tunnels, isTaken)) >= token.tunnelQuota) {
      const doubted = await tx
        .select({ id: tunnels.id })
        .from(tunnels)
        .where(and(isTaken, isStatusStale()));
      return refused("quota_exceeded", doubted);
    }

    if (existing && existing.projectId !== projectId) return refused("duplicate_name");
    const isTcp = request.protocol === "tcp";
    if (existing && (existing.protocol === "tcp") !== isTcp) return refused("other_protocol");
    if (existing?.agentConnected && existing.connectedTokenId !== token.id) {
      return refused("served_by_another", [existing]);
    }
    const now = new Date();
    const ends = {
      expiresAt: getTunnelExpiry(token.plan, request.ttlSeconds, now),
      askedEnd: getRequestedExpiry(request.ttlSeconds, now),
    };
    const actor = { orgId: request.orgId, userId: token.createdBy, ip: request.ip };
    const tunnel =
      existing ?? (await insertTunnel(change, actor, { ...request, ...ends }, projectId));
    if (!tunnel) return change.rollback(refused("duplicate_name"));

    const [row] = await tx
      .update(tunnels)
      .set({
        protocol: request.protocol,
        localPort: request.localPort,
        connectedTokenId: token.id,
        agentConnected: true,
        lastSeenAt: sql`now()`,
        status: "active",
        // An agent that comes back must not put the end off.
        ...(request.ttlSeconds !== undefined && {
          expiresAt: getEarlier(tunnel.expiresAt, ends.expiresAt),
          askedEnd: getEarlier(tunnel.askedEnd, ends.askedEnd),
        }),
      })
      .where(eq(tunnels.id, tunnel.id))
      .returning();
    if (!isTcp) return { ok: { ...row!, relayHost: null }, plan: token.plan };
    await updateAllowedCidrs(change, actor, row!, request);
    const withPort = await reserveTunnelPort(change, tunnel, { port: request.remotePort });
    if (typeof withPort === "string") return change.rollback(refused(withPort));
    return { ok: withPort, plan: token.plan };
  });
}

/** An agent that comes back does not overwrite what was set since it came first. */
async function updateAllowedCidrs(
  change: Change,
  actor: OrganizationActor,
  tunnel: TunnelRow,
  { allowedCidrs, resumeTunnelId }: RegistrationRequest,
): Promise<void> {
  if (allowedCidrs === undefined || resumeTunnelId === tunnel.id) return;
  if (JSON.stringify(allowedCidrs) === JSON.stringify(tunnel.allowedCidrs)) return;
  const [row] = await change.tx
    .update(tunnels)
    .set({ allowedCidrs, settingsVersion: sql`${tunnels.settingsVersion} + 1` })
    .where(eq(tunnels.id, tunnel.id))
    .returning();
  change.audit(actor, "tunnel_ip_allowlist_set", tunnel.id);
  enqueueSettings(change, row!);
}

function refused(refusal: RegistrationRefusal, doubted: { id: string }[] = []): Registration {
  return { refuse: refusal, staleTunnelIds: doubted.map(({ id }) => id) };
}

/** Agents of one token take turns from here on. */
async function lockToken({ tx }: Change, { orgId, tokenNonce }: RegistrationRequest) {
  const [token] = await tx
    .select({
      id: tokens.id,
      revokedAt: tokens.revokedAt,
      tunnelQuota: tokens.tunnelQuota,
      createdBy: tokens.createdBy,
      plan: organizations.plan,
      approvalStatus: organizations.approvalStatus,
    })
    .from(tokens)
    .innerJoin(organizations, eq(organizations.id, tokens.orgId))
    .where(and(eq(tokens.orgId, orgId), eq(tokens.nonce, tokenNonce)))
    .for("no key update", { of: tokens });
  if (!token) return "token_unknown";
  if (token.revokedAt) return "token_revoked";
  if (token.approvalStatus !== "approved") return "organization_not_approved";
  return token;
}

/** One whose time is over ends here, however late the scheduled job is. */
async function lockLiveTunnel(
  change: Change,
  { orgId, label }: RegistrationRequest,
): Promise<TunnelRow | null> {
  const [tunnel] = await change.tx
    .select()
    .from(tunnels)
    .where(and(liveTunnels(orgId), eq(tunnels.subdomain, label), ne(tunnels.status, "expired")))
    .for("update");
  if (!tunnel) return null;
  if (tunnel.expiresAt && tunnel.expiresAt.getTime() <= Date.now()) {
    await expireTunnel(change, tunnel);
    return null;
  }
  return tunnel;
}

/** Why the tunnel that an agent comes back to is not there: it must not be made anew behind its owner's back. */
async function findResumeError(
  { tx }: Change,
  { orgId, resumeTunnelId }: RegistrationRequest,
): Promise<"tunnel_deleted" | "tunnel_expired" | null> {
  if (resumeTunnelId === undefined) return null;
  const [tunnel] = await tx
    .select({ deletedAt: tunnels.deletedAt, status: tunnels.status })
    .from(tunnels)
    .where(and(eq(tunnels.orgId, orgId), eq(tunnels.id, resumeTunnelId)));
  if (tunnel?.deletedAt) return "tunnel_deleted";
  return tunnel?.status === "expired" ? "tunnel_expired" : null;
}

function isStatusStale() {
  const freshSince = new Date(Date.now() - TUNNEL_STATUS_FRESH_MS);
  return lt(tunnels.lastSeenAt, freshSince);
}

function getEarlier(a: Date | null, b: Date | null): Date | null {
  if (!a || !b) return a ?? b;
  return a < b ? a : b;
}
