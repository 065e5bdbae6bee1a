/** Creates the tunnel of an agent whose name was never used, such as a random one, in two statements. */
import { sql, type SQL } from "drizzle-orm";
import { toAuditEvent } from "../audit.ts";
import { getTunnelExpiry } from "../billing/plans.ts";
import {
  buildLock,
  CHANGES_OF_A_KIND_DAILY_MAX,
  countRecentChanges,
  ORGANIZATION_MAXIMA,
} from "../bounds.ts";
import { fromNow } from "../clock.ts";
import type { Database } from "../database.ts";
import { OUTBOX_LEASE_MS } from "../outbox.ts";
import type { OutboxMessage } from "../outbox-messages.ts";
import { auditEvents } from "../tables/audit.ts";
import { outbox } from "../tables/outbox.ts";
import { hostnames, tunnels } from "../tables/tunnels.ts";
import type { RegisteredTunnel, RegistrationRequest } from "./registrations.ts";
import { buildOwnerLock, isAdmitted, type TunnelOwner } from "./tunnel-owner.ts";
import { isUnendedTunnelIn } from "./undeleted-tunnels.ts";

/** @returns null when any condition does not hold. */
export async function createServedTunnel(
  { query, deliver }: Database,
  request: RegistrationRequest,
  owner: TunnelOwner,
): Promise<RegisteredTunnel | null> {
  const { orgId, plan } = owner;
  const { name, label: subdomain } = request;
  const createdAt = new Date();
  const expiresAt = getTunnelExpiry(plan, undefined, createdAt);
  const tunnel = { id: crypto.randomUUID(), orgId, name, subdomain, expiresAt };
  const message = {
    kind: "hostname" as const,
    payload: { host: subdomain, tunnelId: tunnel.id, version: 1 },
  };
  const [, { rows }] = await query.batch([
    query.execute(buildOwnerLock(owner, buildLock(orgId, "tunnels"))),
    // A statement of its own, which sees what was committed before the locks were acquired.
    query.execute<InsertedRow>(buildInsert(request, owner, { ...tunnel, createdAt }, message)),
  ]);
  const [row] = rows;
  if (!row) return null;
  await deliver([{ ...message, id: Number(row.message_id), attempts: 0 }]);
  const { settings_version: settingsVersion, shards } = row;
  const withoutRelay = { relayId: null, publicPort: null, relayHost: null };
  return { tunnel: { ...tunnel, settingsVersion, shards, ...withoutRelay }, plan };
}

interface NewRow {
  id: string;
  name: string;
  createdAt: Date;
  expiresAt: Date | null;
}

type InsertedRow = {
  settings_version: number;
  shards: number;
  message_id: string;
};

/** Inserts all rows of a new tunnel, or none. */
function buildInsert(
  { ip, label, hasRandomName, protocol, localPort, tokenNonce: agentNonce }: RegistrationRequest,
  owner: TunnelOwner,
  { id, name, createdAt, expiresAt }: NewRow,
  { kind, payload }: OutboxMessage,
): SQL {
  const { orgId, tokenId, createdBy: userId, projectId } = owner;
  const actor = { orgId, userId, agentNonce, ip };
  const event = toAuditEvent(actor, "tunnel_created", id, { subdomain: label });
  const { action, resourceType, metadata } = event;
  return sql`with admitted as (
      select where ${isAdmitted(owner, label)}
        and (select count(*) from ${tunnels} where ${isUnendedTunnelIn(orgId)})
          < ${ORGANIZATION_MAXIMA.tunnels}
        and ${countRecentChanges(orgId, action)} < ${CHANGES_OF_A_KIND_DAILY_MAX}),
    named as (
      insert into ${hostnames} (host, tunnel_id, version)
      select ${label}, ${id}::uuid, 1 from admitted on conflict do nothing returning host),
    created as (
      insert into ${tunnels} (id, org_id, project_id, name, subdomain, has_random_name, protocol, local_port,
        status, connected_token_id, agent_connected, last_seen_at, created_at, expires_at)
      select ${id}::uuid, ${orgId}::uuid, ${projectId}::uuid, ${name}, host, ${hasRandomName}::boolean,
        ${protocol}, ${localPort}::int, 'active', ${tokenId}::uuid, true, now(),
        ${createdAt.toISOString()}::timestamptz, ${expiresAt?.toISOString() ?? null}::timestamptz
      from named returning settings_version, shards),
    recorded as (
      insert into ${auditEvents} (org_id, user_id, action, resource_type, resource_id, ip, metadata)
      select ${orgId}::uuid, ${userId}::uuid, ${action}, ${resourceType}, ${id}, ${ip},
        ${JSON.stringify(metadata)}::jsonb from named),
    enqueued as (
      insert into ${outbox} (kind, payload, next_attempt_at)
      select ${kind}, ${JSON.stringify(payload)}::jsonb, ${fromNow(OUTBOX_LEASE_MS)} from named
      returning id as message_id)
    select * from created, enqueued`;
}
