/**
 * An agent asks for a name that has never been used: the usual case when many agents connect at once. Two requests to the
 * database create its tunnel, so that the agents of one token wait for each other only while two statements run.
 * Everything else, and every refusal, is decided by `registrations.ts`, whose rules the statements repeat.
 */
import { and, eq, isNull, notExists, sql, type SQL } from "drizzle-orm";
import type { Plan } from "../../../protocol/plans.ts";
import { toAuditEvent } from "../audit.ts";
import { getRequestedExpiry, getTunnelExpiry } from "../billing/plans.ts";
import {
  buildLock,
  CHANGES_OF_A_KIND_DAILY_MAX,
  countRecentChanges,
  ORGANIZATION_MAXIMA,
} from "../bounds.ts";
import { fromNow } from "../clock.ts";
import { prepared, type Database } from "../database.ts";
import { OUTBOX_LEASE_MS } from "../outbox.ts";
import type { OutboxMessage } from "../outbox-messages.ts";
import { findOverBudget, hasBudget, masters } from "../tokens/spending.ts";
import { auditEvents } from "../tables/audit.ts";
import { organizations, projects } from "../tables/organizations.ts";
import { outbox } from "../tables/outbox.ts";
import { tokens } from "../tables/tokens.ts";
import { hostnames, tunnels } from "../tables/tunnels.ts";
import {
  hasGates,
  isOtherServedBy,
  type RegisteredTunnel,
  type RegistrationRequest,
} from "./registrations.ts";
import { isUnendedTunnelIn } from "./undeleted-tunnels.ts";

const owners = prepared((query) =>
  query
    .select({
      tokenId: tokens.id,
      createdBy: tokens.createdBy,
      projectId: projects.id,
      plan: organizations.plan,
      hasBudget: sql<boolean>`${hasBudget}`,
    })
    .from(tokens)
    .innerJoin(organizations, eq(organizations.id, tokens.orgId))
    .innerJoin(
      projects,
      and(
        eq(projects.orgId, tokens.orgId),
        eq(projects.slug, sql.placeholder("projectSlug")),
        isNull(projects.deletedAt),
      ),
    )
    .leftJoin(masters, eq(masters.id, tokens.mintedByMasterId))
    .where(
      and(
        eq(tokens.orgId, sql.placeholder("orgId")),
        eq(tokens.nonce, sql.placeholder("tokenNonce")),
        isNull(tokens.revokedAt),
        eq(organizations.approvalStatus, "approved"),
        notExists(
          query
            .select({ host: hostnames.host })
            .from(hostnames)
            .where(eq(hostnames.host, sql.placeholder("label"))),
        ),
      ),
    )
    .prepare("owners"),
);

/** Who the tunnel of an agent will belong to. */
interface Owner {
  tokenId: string;
  createdBy: string | null;
  projectId: string;
  plan: Plan;
}

/** @returns null when any condition does not hold; then the agent registers, or is refused, by `registerTunnel`. */
export async function createNewTunnel(
  db: Database,
  request: RegistrationRequest,
): Promise<RegisteredTunnel | null> {
  const { orgId, tokenNonce, projectSlug, label, resumeTunnelId } = request;
  if (resumeTunnelId !== undefined || request.protocol === "tcp") return null;
  if (hasGates(request) || request.domain !== null) return null;
  const [owner] = await owners(db).execute({ orgId, tokenNonce, projectSlug, label });
  if (!owner) return null;
  // A budget that is spent meanwhile disconnects the agent when its admission is checked again.
  const isTokenOverBudget =
    owner.hasBudget && (await findOverBudget(db.query, eq(tokens.id, owner.tokenId))).length > 0;
  return isTokenOverBudget ? null : insertNewTunnel(db, request, owner);
}

async function insertNewTunnel(
  { query, deliver }: Database,
  request: RegistrationRequest,
  owner: Owner,
): Promise<RegisteredTunnel | null> {
  const { orgId, name, label: subdomain, ttlSeconds } = request;
  const { plan } = owner;
  const now = new Date();
  const tunnel = {
    id: crypto.randomUUID(),
    orgId,
    name,
    subdomain,
    expiresAt: getTunnelExpiry(plan, ttlSeconds, now),
    requestedExpiresAt: getRequestedExpiry(ttlSeconds, now),
  };
  const message = {
    kind: "hostname" as const,
    payload: { host: subdomain, tunnelId: tunnel.id, version: 1 },
  };
  const [, { rows }] = await query.batch([
    query.execute(buildLocks(request, owner)),
    // A statement of its own, which sees what was committed before the locks were acquired.
    query.execute<InsertedRow>(buildInsert(request, owner, tunnel, message)),
  ]);
  const [row] = rows;
  if (!row) return null;
  await deliver([{ ...message, id: Number(row.message_id), attempts: 0 }]);
  const { settings_version: settingsVersion, shards } = row;
  const withoutRelay = { relayId: null, publicPort: null, relayHost: null };
  return { tunnel: { ...tunnel, settingsVersion, shards, ...withoutRelay }, plan };
}

/** Locks the project, then the token, then the number of tunnels, in the order in which `registerTunnel` does. */
function buildLocks({ orgId }: RegistrationRequest, { tokenId, projectId }: Owner): SQL {
  return sql`with project as materialized (
      select id from ${projects}
      where ${and(eq(projects.id, projectId), isNull(projects.deletedAt))} for share),
    token as materialized (
      select ${tokens.id} from ${tokens}, project where ${eq(tokens.id, tokenId)}
      for no key update of ${tokens})
    select ${buildLock(orgId, "tunnels")} from token`;
}

type InsertedRow = {
  settings_version: number;
  shards: number;
  message_id: string;
};

interface InsertedTunnel {
  id: string;
  name: string;
  expiresAt: Date | null;
  requestedExpiresAt: Date | null;
}

/** Inserts all rows of a new tunnel, or none. */
function buildInsert(
  { orgId, ip, label, protocol, localPort }: RegistrationRequest,
  { tokenId, createdBy, projectId, plan }: Owner,
  { id, name, expiresAt, requestedExpiresAt }: InsertedTunnel,
  { kind, payload }: OutboxMessage,
): SQL {
  const event = toAuditEvent({ orgId, userId: createdBy, ip }, "tunnel_created", id, {
    subdomain: label,
  });
  const { action, resourceType, metadata } = event;
  const served = sql`(select count(*) from ${tunnels} where ${isOtherServedBy(tokenId, label)})`;
  const existing = sql`(select count(*) from ${tunnels} where ${isUnendedTunnelIn(orgId)})`;
  return sql`with admitted as (
      select ${tokens.id} from ${tokens}, ${organizations}, ${projects}
      where ${and(
        eq(tokens.id, tokenId),
        isNull(tokens.revokedAt),
        eq(organizations.id, orgId),
        eq(organizations.plan, plan),
        eq(organizations.approvalStatus, "approved"),
        eq(projects.id, projectId),
        isNull(projects.deletedAt),
        sql`${served} < ${tokens.tunnelQuota}`,
        sql`${existing} < ${ORGANIZATION_MAXIMA.tunnels}`,
        sql`${countRecentChanges(orgId, action)} < ${CHANGES_OF_A_KIND_DAILY_MAX}`,
      )}),
    named as (
      insert into ${hostnames} (host, tunnel_id, version)
      select ${label}, ${id}::uuid, 1 from admitted on conflict do nothing returning host),
    created as (
      insert into ${tunnels} (id, org_id, project_id, name, subdomain, protocol, local_port,
        status, connected_token_id, agent_connected, last_seen_at, expires_at, asked_end)
      select ${id}::uuid, ${orgId}::uuid, ${projectId}::uuid, ${name}, host, ${protocol},
        ${localPort}::int, 'active', ${tokenId}::uuid, true, now(),
        ${toTimestamp(expiresAt)}, ${toTimestamp(requestedExpiresAt)}
      from named returning settings_version, shards),
    recorded as (
      insert into ${auditEvents} (org_id, user_id, action, resource_type, resource_id, ip, metadata)
      select ${orgId}::uuid, ${createdBy}::uuid, ${action}, ${resourceType}, ${id}, ${ip},
        ${JSON.stringify(metadata)}::jsonb from named),
    enqueued as (
      insert into ${outbox} (kind, payload, next_attempt_at)
      select ${kind}, ${JSON.stringify(payload)}::jsonb, ${fromNow(OUTBOX_LEASE_MS)} from named
      returning id as message_id)
    select settings_version, shards, message_id from created, enqueued`;
}

function toTimestamp(date: Date | null): SQL {
  return sql`${date?.toISOString() ?? null}::timestamptz`;
}
