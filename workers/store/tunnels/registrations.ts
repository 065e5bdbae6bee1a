/** An agent connects with a token and asks for a name: one transaction finds or creates its tunnel, or refuses. */
import { hasGates } from "../../../protocol/schemas/tunnels/agent-gates.ts";
import { and, eq, sql } from "drizzle-orm";
import type { PgUpdateSetSource } from "drizzle-orm/pg-core";
import { TUNNEL_TTL_MAX_SECONDS } from "../../../protocol/limits.ts";
import type { Plan } from "../../../protocol/plans.ts";
import { isHttpProtocol } from "../../../protocol/schemas/tunnels/tunnels.ts";
import type { TtlLimit } from "../../../protocol/wire/ttl-limits.ts";
import {
  getRequestedExpiry,
  getTunnelExpiry,
  hasFeature,
  type PlanState,
} from "../billing/plans.ts";
import type { OrganizationActor } from "../audit.ts";
import type { UnitOfWork, Database } from "../database.ts";
import { enqueueSettings, setAgentGates, type AgentGateValues } from "../access/gates.ts";
import {
  bindDomainOfAgent,
  type DomainRefusal,
  type DomainRequest,
} from "../domains/agent-domains.ts";
import { lockPlan } from "../locks.ts";
import { isPortRefusal, type PortRefusal } from "../networks/relay-ports.ts";
import { lockProject } from "../organizations/projects.ts";
import { isOverBudget } from "../tokens/spending.ts";
import { checkUsable, type TokenRefusal } from "../tokens/token-refusal.ts";
import { organizations } from "../tables/organizations.ts";
import { tokens } from "../tables/tokens.ts";
import { tunnels, type TunnelRow } from "../tables/tunnels.ts";
import type { Transaction } from "../transaction.ts";
import { releaseTunnelPort, reserveTunnelPort, type TunnelWithRelay } from "./tcp-ports.ts";
import { expireTunnel } from "./lifecycle.ts";
import { NEXT_SETTINGS_VERSION } from "./settings-version.ts";
import { insertTunnel } from "./tunnels.ts";
import { isDue, isOtherServedBy, isStatusStale, isUnendedTunnelIn } from "./undeleted-tunnels.ts";

export interface RegistrationRequest {
  orgId: string;
  tokenNonce: string;
  ip: string;
  name: string;
  /** The agent wants any name, and neither a certain port nor a domain. */
  hasRandomName: boolean;
  /** The name with the project's suffix. */
  label: string;
  projectSlug: string;
  protocol: TunnelRow["protocol"];
  localPort: number;
  ttlSeconds: number | undefined;
  /** The tunnel that the agent served before it reconnected. */
  resumeTunnelId: string | undefined;
  /** The agent connects to another object of the tunnel that it serves. */
  isFurtherConnection: boolean;
  /** The public port that the agent wants, for protocol `tcp`. */
  remotePort: number | undefined;
  /** Whether the tunnel has no public port, for protocol `tcp`. */
  isPrivate: boolean;
  /** CIDR blocks that visitors may come from, for protocol `tcp`. null: any address. undefined: unchanged. */
  allowedCidrs: string[] | null | undefined;
  /** Ignored from an agent that reconnects: they may have been changed since it first connected. */
  gates: AgentGateValues;
  /** A custom domain that must lead to the tunnel. Ignored from an agent that reconnects. */
  domain: DomainRequest | null;
}

export type RegistrationRefusal =
  | TokenRefusal
  | "project_not_found"
  | "tunnel_deleted"
  | "tunnel_expired"
  | "tunnel_stopped"
  | "duplicate_name"
  /** The tunnel with this name carries HTTP and the agent wants TCP, or the reverse. */
  | "other_protocol"
  | PortRefusal
  | DomainRefusal
  | "plan_lacks_password"
  | "served_by_another"
  | "quota_exceeded";

type RegisteredColumn =
  | "id"
  | "orgId"
  | "name"
  | "subdomain"
  | "expiresAt"
  | "settingsVersion"
  | "shards"
  | "relayId"
  | "publicPort"
  | "relayHost";

/** The tunnel that the agent may serve. `plan` is the plan of its organization. */
export interface RegisteredTunnel {
  tunnel: Pick<TunnelWithRelay, RegisteredColumn>;
  plan: Plan;
  /** Why the tunnel expires before the time to live that the agent asked for. */
  ttlLimit?: TtlLimit | undefined;
}

interface Refused {
  refusal: RegistrationRefusal;
  /** For `duplicate_name`: when the name is free, if it is no longer in use. */
  freeAt?: Date | null;
  /** Tunnels whose rows caused the refusal and may be stale: their objects have the current status. */
  staleTunnelIds: string[];
}

export type Registration = RegisteredTunnel | Refused;

/**
 * Finds or creates the tunnel, and marks it as connected in the same transaction: of two agents that ask for the last
 * tunnel of a token's quota, one is refused. If the agent does not connect after all, the tunnel's object corrects the row.
 *
 * @throws UndeliveredError when the tunnel's object has not received the gates that the agent sets: it must not serve yet.
 */
export function registerTunnel(db: Database, request: RegistrationRequest): Promise<Registration> {
  const requireDelivery = hasGates(request.gates) || request.domain !== null;
  return db.transaction((change) => register(change, request), { requireDelivery });
}

async function register(change: UnitOfWork, request: RegistrationRequest): Promise<Registration> {
  const permit = await lockAndCheck(change, request);
  if ("refusal" in permit) return permit;
  const { token } = permit;
  const actor = toActor(request, token);
  const saved = await saveTunnel(change, actor, permit, request);
  if ("freeAt" in saved) return change.rollback({ ...refuse("duplicate_name"), ...saved });
  const configured = isHttpProtocol(request.protocol)
    ? await applyHttpSettings(change, actor, { ...permit, ...saved }, request)
    : await applyTcpSettings(change, actor, saved.tunnel, request);
  if (typeof configured === "string" || isPortRefusal(configured))
    return change.rollback(refuse(configured));
  return { tunnel: configured, plan: token.plan, ttlLimit: saved.ttlLimit };
}

/** What a registration has locked, and may go on with. */
interface Permit {
  /** null when the agent asks for no gates. */
  plan: PlanState | null;
  token: LockedToken;
  projectId: string;
  /** The tunnel that has the name. */
  existing: TunnelRow | null;
}

/** Locks in the order of all other changes: the organization, the project, the token, the tunnel. */
async function lockAndCheck(
  change: UnitOfWork,
  request: RegistrationRequest,
): Promise<Permit | Refused> {
  const { tx } = change;
  // A change of the plan locks the organization before its tunnels too.
  const plan = hasGates(request.gates) ? await lockPlan(tx, request.orgId) : null;
  const needsPassword = Boolean(request.gates.basicAuth);
  if (needsPassword && !(plan && hasFeature("tunnel_password", plan, new Date())))
    return refuse("plan_lacks_password");
  // The deletion of a project locks the project before its tokens too.
  const projectId = await lockProject(tx, request.orgId, request.projectSlug);
  const token = await lockToken(change, request);
  if (typeof token === "string") return refuse(token);
  if (projectId === null) return refuse("project_not_found");
  if (await isOverBudget(tx, token.id)) return refuse("over_budget");

  const existing = await lockLiveTunnel(change, request);
  if (existing?.stoppedAt) return refuse("tunnel_stopped");
  const resumeError =
    existing?.id === request.resumeTunnelId ? null : await findResumeError(change, request);
  if (resumeError !== null) return refuse(resumeError);

  const isOtherServed = isOtherServedBy(token.id, request.label);
  if ((await tx.$count(tunnels, isOtherServed)) >= token.tunnelQuota) {
    const stale = await tx
      .select({ id: tunnels.id })
      .from(tunnels)
      .where(and(isOtherServed, isStatusStale()));
    return refuse("quota_exceeded", stale);
  }

  if (existing && existing.projectId !== projectId) return refuse("duplicate_name");
  if (existing && isHttpProtocol(existing.protocol) !== isHttpProtocol(request.protocol))
    return refuse("other_protocol");
  if (existing?.agentConnected && existing.connectedTokenId !== token.id)
    return refuse("served_by_another", [existing]);
  return { plan, token, projectId, existing };
}

function toActor(
  { orgId, tokenNonce: agentNonce, ip }: RegistrationRequest,
  { createdBy: userId }: LockedToken,
): OrganizationActor {
  return { orgId, userId, agentNonce, ip };
}

/**
 * Marks the tunnel as connected, or creates it.
 * @returns when the name is free, if it belonged to another organization until recently.
 */
async function saveTunnel(
  change: UnitOfWork,
  actor: OrganizationActor,
  { token, projectId, existing }: Permit,
  request: RegistrationRequest,
): Promise<{ tunnel: TunnelRow; ttlLimit: TtlLimit | undefined } | { freeAt: Date | null }> {
  const { name, label, ttlSeconds } = request;
  const now = new Date();
  const expiry = {
    expiresAt: getTunnelExpiry(token.plan, ttlSeconds, now),
    requestedExpiresAt: getRequestedExpiry(ttlSeconds, now),
  };
  const served = getServedColumns(request, token.id);
  const tunnel = existing
    ? await updateTunnel(change.tx, existing, {
        ...served,
        // A reconnecting agent can bring the expiry forward, but not postpone it.
        ...(ttlSeconds !== undefined && {
          expiresAt: getEarlier(existing.expiresAt, expiry.expiresAt),
          requestedExpiresAt: getEarlier(existing.requestedExpiresAt, expiry.requestedExpiresAt),
        }),
      })
    : await insertTunnel(change, actor, {
        name,
        label,
        projectId,
        createdAt: now,
        ...served,
        ...expiry,
      });
  if ("freeAt" in tunnel) return tunnel;
  return { tunnel, ttlLimit: findTtlLimit(tunnel, expiry, ttlSeconds) };
}

type Expiry = Pick<TunnelRow, "expiresAt" | "requestedExpiresAt">;

/** @param created when a new tunnel would expire. @param ttlSeconds as requested. */
function findTtlLimit(
  { expiresAt }: Expiry,
  created: Expiry,
  ttlSeconds: number | undefined,
): TtlLimit | undefined {
  if (ttlSeconds === undefined || !expiresAt) return undefined;
  if (created.expiresAt && expiresAt < created.expiresAt) return "existing_tunnel";
  if (created.requestedExpiresAt && expiresAt < created.requestedExpiresAt) return "plan";
  return ttlSeconds > TUNNEL_TTL_MAX_SECONDS ? "maximum" : undefined;
}

/** @returns the values of the row of a tunnel that an agent serves from now on. */
export function getServedColumns(
  { protocol, localPort, hasRandomName, resumeTunnelId }: RegistrationRequest,
  connectedTokenId: string,
) {
  return {
    protocol,
    localPort,
    // An agent that reconnects asks for the name that it was given.
    ...(resumeTunnelId === undefined && { hasRandomName }),
    connectedTokenId,
    agentConnected: true,
    lastSeenAt: sql`now()`,
    status: "active" as const,
  };
}

async function updateTunnel(
  tx: Transaction,
  { id }: TunnelRow,
  columns: PgUpdateSetSource<typeof tunnels>,
): Promise<TunnelRow> {
  const [row] = await tx.update(tunnels).set(columns).where(eq(tunnels.id, id)).returning();
  return row!;
}

/** Sets the gates and the domain that the agent asks for. @param plan locked; null when it asks for no gates. */
async function applyHttpSettings(
  change: UnitOfWork,
  actor: OrganizationActor,
  { tunnel, plan }: { tunnel: TunnelRow; plan: PlanState | null },
  request: RegistrationRequest,
): Promise<TunnelWithRelay | DomainRefusal> {
  if (request.resumeTunnelId === tunnel.id) return { ...tunnel, relayHost: null };
  if (request.domain !== null) {
    const bound = await bindDomainOfAgent(change, actor, request.domain, tunnel.id);
    if (bound !== "bound") return bound;
  }
  const changed = plan
    ? await setAgentGates(change, actor, { tunnel, plan }, request.gates)
    : tunnel;
  return { ...changed, relayHost: null };
}

/** Sets the allowlist that the agent asks for, and reserves or releases the public port. */
async function applyTcpSettings(
  change: UnitOfWork,
  actor: OrganizationActor,
  tunnel: TunnelRow,
  request: RegistrationRequest,
): Promise<TunnelWithRelay | PortRefusal> {
  await updateAllowedCidrs(change, actor, tunnel, request);
  return request.isPrivate
    ? releaseTunnelPort(change, tunnel)
    : reserveTunnelPort(change, tunnel, { port: request.remotePort });
}

/** A reconnecting agent does not overwrite the allowlist, which may have been changed since it first connected. */
async function updateAllowedCidrs(
  change: UnitOfWork,
  actor: OrganizationActor,
  tunnel: TunnelRow,
  { allowedCidrs, resumeTunnelId }: RegistrationRequest,
): Promise<void> {
  if (allowedCidrs === undefined || resumeTunnelId === tunnel.id) return;
  if (JSON.stringify(allowedCidrs) === JSON.stringify(tunnel.allowedCidrs)) return;
  const [row] = await change.tx
    .update(tunnels)
    .set({ allowedCidrs, settingsVersion: NEXT_SETTINGS_VERSION })
    .where(eq(tunnels.id, tunnel.id))
    .returning();
  if (allowedCidrs) {
    change.audit(actor, "tunnel_ip_allowlist_set", tunnel.id, { cidrs: allowedCidrs });
  } else change.audit(actor, "tunnel_ip_allowlist_removed", tunnel.id);
  enqueueSettings(change, row!);
}

function refuse(refusal: RegistrationRefusal, stale: { id: string }[] = []): Refused {
  return { refusal, staleTunnelIds: stale.map(({ id }) => id) };
}

type LockedToken = Exclude<Awaited<ReturnType<typeof lockToken>>, string>;

/** Locks the token, so that registrations with it wait for each other. */
async function lockToken({ tx }: UnitOfWork, { orgId, tokenNonce }: RegistrationRequest) {
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
  return checkUsable(token);
}

/**
 * A tunnel whose expiry has been reached expires here if the scheduled job has not run yet.
 * @returns null when the organization has no tunnel with the label that has not ended.
 */
async function lockLiveTunnel(
  change: UnitOfWork,
  { orgId, label }: RegistrationRequest,
): Promise<TunnelRow | null> {
  const [found] = await change.tx
    .select({ tunnel: tunnels, isDue })
    .from(tunnels)
    .where(and(isUnendedTunnelIn(orgId), eq(tunnels.subdomain, label)))
    .for("update");
  if (!found?.isDue) return found?.tunnel ?? null;
  await expireTunnel(change, found.tunnel);
  return null;
}

/** Why an agent can't resume its tunnel. A tunnel that its owner deleted must not be created again by a reconnect. */
async function findResumeError(
  { tx }: UnitOfWork,
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

function getEarlier(a: Date | null, b: Date | null): Date | null {
  if (!a || !b) return a ?? b;
  return a < b ? a : b;
}
