/**
 * The public ports of relays: UDP ports of networks and TCP ports of tunnels. The primary key of `relay_ports` decides
 * concurrent requests for a port. When a port that an agent has served is released, other organizations can't reserve it for
 * a day. An organization may have as many ports of a relay as stay free for others: at most half of them, or all where it is
 * the server's only organization.
 */
import { ago } from "../clock.ts";
import { and, eq, isNull, sql, type SQL } from "drizzle-orm";
import { log } from "../../../shared/log.ts";
import { buildLock } from "../bounds.ts";
import type { Database, UnitOfWork } from "../database.ts";
import { findApprovalRefusal, type ApprovalRefusal } from "../organizations/approval.ts";
import { relayPorts, relays } from "../tables/networks.ts";
import { organizations } from "../tables/organizations.ts";
import { DAY_MS } from "../../../shared/time.ts";

/** How long other organizations can't reserve a released port. */
const RELAY_PORT_COOL_DOWN_MS = DAY_MS;

/** Below this fraction of free ports, a warning for the operator is logged. */
const LOW_PORTS_FRACTION = 0.1;

interface PortRequest {
  protocol: "udp" | "tcp";
  orgId: string;
  /** The network or tunnel. The caller has locked its row, so that requests for one owner wait for each other. */
  ownerId: string;
  /** undefined: the relay of the owner's current port, else the connected relay with the most free ports. */
  relayId?: string | undefined;
  /** undefined: the owner's current or last port, else any free one. */
  wantedPort?: number | undefined;
  /** A port that the relay can't listen on: if it is the owner's, the owner gets another one. */
  unusablePort?: number | undefined;
}

export interface ReservedPort {
  relayId: string;
  port: number;
}

export type PortRefusal =
  /** `relayId` names no relay. */
  | "unknown_relay"
  /** No relay has ever connected. */
  | "no_relay"
  /** Every port is reserved. */
  | "exhausted"
  /** The organization has as many ports as are free for others. */
  | "share_used"
  | ApprovalRefusal
  /** `wantedPort` is reserved, or another organization had reserved it within the last day. */
  | "port_taken"
  | PortOutsideRanges;

/** `wantedPort` is in none of these ranges: that of the relay, or of all relays. */
export interface PortOutsideRanges {
  ranges: PortRange[];
}

type PortRange = Pick<typeof relays.$inferSelect, "firstPort" | "lastPort">;

export function isPortRefusal<Success extends object>(
  result: Success | PortRefusal,
): result is PortRefusal {
  return typeof result === "string" || "ranges" in result;
}

/**
 * Reserves a port, or returns the owner's current port if it matches the request. An owner has one port at a time: one
 * that does not match is released. A refusal changes nothing.
 */
export async function reservePort(
  change: Pick<UnitOfWork, "tx">,
  request: PortRequest,
): Promise<ReservedPort | PortRefusal> {
  const { orgId, ownerId, wantedPort, unusablePort } = request;
  const held = await findReservedPort(change, ownerId);
  const isUsable = held !== null && held.isInRange && held.port !== unusablePort;
  if (isUsable && matchesRequest(held, request)) {
    if (wantedPort !== undefined) await forbidReplacement(change, ownerId);
    return { relayId: held.relayId, port: held.port };
  }
  // Reservations of an organization wait for each other until the commit, so that they count each other.
  await change.tx.execute(sql`select ${buildLock(orgId, "relay_ports")}`);
  const refusal = await lookUpApproval(change, orgId);
  if (refusal !== null) return refusal;
  if (held) await releasePort(change, ownerId);
  const reserved = await reserveCandidate(change, {
    ...request,
    relayId: request.relayId ?? (held?.isInRange ? held.relayId : undefined),
    // A port outside of a range that was made smaller is always replaced, one that an agent calls unusable only within the share.
    needsShare: held === null || held.isInRange,
  });
  if (held && isPortRefusal(reserved)) await undoRelease(change, held);
  return reserved;
}

async function reserveCandidate(
  change: Pick<UnitOfWork, "tx">,
  request: CandidateRequest,
): Promise<ReservedPort | PortRefusal> {
  // An attempt fails only if a concurrent request has reserved the port, so the loop ends.
  for (;;) {
    const candidate = await findCandidate(change, request);
    if (isPortRefusal(candidate)) return candidate;
    const { relayId, port, freePorts, ports } = candidate;
    if (freePorts < ports * LOW_PORTS_FRACTION)
      log("warn", "relay_ports_low", { relayId, freePorts, ports });
    if (await claimPort(change, candidate, request)) return { relayId, port };
  }
}

/** @returns false when a concurrent request has reserved the port. */
async function claimPort(
  { tx }: Pick<UnitOfWork, "tx">,
  { relayId, port }: ReservedPort,
  { protocol, orgId, ownerId, wantedPort }: PortRequest,
): Promise<boolean> {
  // Devices have a network's port in their configurations.
  const isReplaceable = protocol === "tcp" && wantedPort === undefined;
  const claimed = await tx
    .insert(relayPorts)
    .values({ relayId, port, protocol, orgId, ownerId, wasServed: false, isReplaceable })
    .onConflictDoUpdate({
      target: [relayPorts.relayId, relayPorts.protocol, relayPorts.port],
      set: {
        orgId,
        ownerId,
        releasedAt: null,
        // The visitors of an earlier tunnel of the same organization may still know the port.
        wasServed: sql`${relayPorts.wasServed} and ${relayPorts.orgId} is not distinct from ${orgId}`,
        isReplaceable: sql`${isReplaceable} and not (${relayPorts.wasServed} and ${relayPorts.ownerId} = ${ownerId})`,
      },
      setWhere: isAvailable(orgId),
    })
    .returning({ port: relayPorts.port });
  return claimed.length > 0;
}

/**
 * Call it before an agent gets a ticket for the owner's port.
 * @returns whether the port was replaceable until now.
 */
export async function markPortServed({ query }: Database, ownerId: string): Promise<boolean> {
  const isHeld = isHeldBy(ownerId);
  const isMarked = and(eq(relayPorts.wasServed, true), eq(relayPorts.isReplaceable, false));
  const { rows } = await query.execute<{ is_replaceable: boolean }>(sql`
    with marked as (select * from ${relayPorts} where ${isHeld} and not (${isMarked}) for update)
    update ${relayPorts} set was_served = true, is_replaceable = false from marked
    where ${isHeld} returning marked.is_replaceable`);
  return rows[0]?.is_replaceable ?? false;
}

/** For an owner that asks for the port that it has: from now on no other port replaces it. */
async function forbidReplacement({ tx }: Pick<UnitOfWork, "tx">, ownerId: string): Promise<void> {
  await tx.update(relayPorts).set({ isReplaceable: false }).where(isHeldBy(ownerId));
}

/** Releases the owner's port. Its organization can reserve it again at once, others after the cool-down. */
export async function releasePort({ tx }: Pick<UnitOfWork, "tx">, ownerId: string): Promise<void> {
  await tx
    .update(relayPorts)
    .set({ releasedAt: sql`now()` })
    .where(isHeldBy(ownerId));
}

/** Releases the ports of all networks and tunnels of an organization. */
export async function releasePorts({ tx }: Pick<UnitOfWork, "tx">, orgId: string): Promise<void> {
  await tx
    .update(relayPorts)
    .set({ releasedAt: sql`now()` })
    .where(and(eq(relayPorts.orgId, orgId), isNull(relayPorts.releasedAt)));
}

interface OwnedPort extends ReservedPort {
  protocol: "udp" | "tcp";
  /** Whether the port is still in the relay's range, which its operator may have changed. */
  isInRange: boolean;
}

async function findReservedPort(
  { tx }: Pick<UnitOfWork, "tx">,
  ownerId: string,
): Promise<OwnedPort | null> {
  const [held] = await tx
    .select({
      relayId: relayPorts.relayId,
      protocol: relayPorts.protocol,
      port: relayPorts.port,
      isInRange: sql<boolean>`${relayPorts.port} between ${relays.firstPort} and ${relays.lastPort}`,
    })
    .from(relayPorts)
    .innerJoin(relays, eq(relays.id, relayPorts.relayId))
    .where(isHeldBy(ownerId));
  return held ?? null;
}

function matchesRequest(held: OwnedPort, { protocol, relayId, wantedPort }: PortRequest): boolean {
  return (
    held.protocol === protocol &&
    (relayId === undefined || relayId === held.relayId) &&
    (wantedPort === undefined || wantedPort === held.port)
  );
}

/** Undoes a release of the same transaction, which has locked the row. */
async function undoRelease({ tx }: Pick<UnitOfWork, "tx">, held: OwnedPort): Promise<void> {
  await tx
    .update(relayPorts)
    .set({ releasedAt: null })
    .where(
      and(
        eq(relayPorts.relayId, held.relayId),
        eq(relayPorts.protocol, held.protocol),
        eq(relayPorts.port, held.port),
      ),
    );
}

/** The port that the owner has now. */
function isHeldBy(ownerId: string): SQL {
  return and(eq(relayPorts.ownerId, ownerId), isNull(relayPorts.releasedAt))!;
}

/** Whether other organizations can't reserve a port that has a row in `relay_ports`. */
const isTaken = sql`(${relayPorts.releasedAt} is null or ${relayPorts.releasedAt} > ${ago(RELAY_PORT_COOL_DOWN_MS)})`;

/** Whether the organization can reserve a port that has a row in `relay_ports`. */
function isAvailable(orgId: string) {
  return sql`${relayPorts.releasedAt} is not null and (${relayPorts.orgId} = ${orgId} or not ${isTaken})`;
}

async function lookUpApproval(
  { tx }: Pick<UnitOfWork, "tx">,
  orgId: string,
): Promise<ApprovalRefusal | null> {
  const [organization] = await tx
    .select({ status: organizations.approvalStatus })
    .from(organizations)
    .where(eq(organizations.id, orgId));
  return findApprovalRefusal(organization!.status);
}

type CandidateRow = Record<"port" | "free_ports" | "ports", number> & {
  relay_id: string;
  is_in_share: boolean;
};

interface Candidate extends ReservedPort {
  /** The relay's ports of this protocol: those that the organization can reserve, and all. */
  freePorts: number;
  ports: number;
}

interface CandidateRequest extends PortRequest {
  /** Whether the port must be within the organization's share. */
  needsShare: boolean;
}

/**
 * Prefers the port that the owner had before, unless its last one is unusable, and then ports that have never been reserved.
 * The choice among equal ports is random, so that concurrent requests rarely choose the same one. The share does not limit an
 * organization's first port, nor the ports of a server's only organization.
 */
async function findCandidate(
  { tx }: Pick<UnitOfWork, "tx">,
  { protocol, orgId, ownerId, relayId, wantedPort, unusablePort, needsShare }: CandidateRequest,
): Promise<Candidate | PortRefusal> {
  const isEligible = relayId === undefined ? sql`true` : sql`${relays.id} = ${relayId}`;
  // The ports that the owner had before may be unusable too.
  const preferred = unusablePort === undefined ? sql`was_owned` : sql`is_unused`;
  const { rows } = await tx.execute<CandidateRow>(sql`
    with candidates as (
      select ${relays.id} as relay_id, candidate.port as port,
        ${relays.connectedEpoch} is not null as is_connected,
        ${relayPorts.ownerId} is not distinct from ${ownerId}::uuid as was_owned,
        ${relayPorts.port} is null as is_unused,
        ${relayPorts.port} is null or (${isAvailable(orgId)}) as is_available,
        ${relayPorts.port} is not null and ${isTaken} as is_taken,
        ${relayPorts.port} is not null and ${isTaken}
          and ${relayPorts.orgId} is not distinct from ${orgId}::uuid as is_own,
        ${relays.lastPort} - ${relays.firstPort} + 1 as ports
      from ${relays}
      cross join lateral generate_series(${relays.firstPort}, ${relays.lastPort}) as candidate(port)
      left join ${relayPorts} on ${relayPorts.relayId} = ${relays.id}
        and ${relayPorts.protocol} = ${protocol} and ${relayPorts.port} = candidate.port
      where ${isEligible}
    ), counted as (
      select *,
        (count(*) filter (where is_available) over of_relay)::int as free_ports,
        count(*) filter (where not is_taken) over of_relay as free_for_others,
        count(*) filter (where is_own) over of_relay as own_ports
      from candidates window of_relay as (partition by relay_id)
    )
    select relay_id, port, free_ports, ports,
      not ${needsShare}::boolean or is_own or own_ports = 0 or own_ports < free_for_others - 1 or not exists (
        select from ${organizations} where ${isNull(organizations.deletedAt)} and ${organizations.id} <> ${orgId}
      ) as is_in_share
    from counted
    where is_available and port is distinct from ${unusablePort ?? null}::int
      and ${wantedPort === undefined ? sql`true` : sql`port = ${wantedPort}`}
    order by is_in_share desc, ${preferred} desc, is_connected desc, free_ports desc, relay_id,
      is_unused desc, random()
    limit 1`);
  const [row] = rows;
  if (row) {
    const { relay_id: relayId, port, free_ports: freePorts, ports } = row;
    return row.is_in_share ? { relayId, port, freePorts, ports } : "share_used";
  }
  return explainRefusal(await tx.select().from(relays).where(isEligible), { relayId, wantedPort });
}

function explainRefusal(
  eligible: (typeof relays.$inferSelect)[],
  { relayId, wantedPort }: Pick<PortRequest, "relayId" | "wantedPort">,
): PortRefusal {
  if (eligible.length === 0) return relayId === undefined ? "no_relay" : "unknown_relay";
  if (wantedPort === undefined) return "exhausted";
  const isInRange = eligible.some(
    ({ firstPort, lastPort }) => wantedPort >= firstPort && wantedPort <= lastPort,
  );
  if (isInRange) return "port_taken";
  return { ranges: eligible.map(({ firstPort, lastPort }) => ({ firstPort, lastPort })) };
}
