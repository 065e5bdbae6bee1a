/**
 * The public ports of relays: a network's UDP port, a tunnel's TCP port. The primary key of `relay_ports`
 * decides every race; a port that was released is kept from other organizations for a day.
 */
import { ago } from "../clock.ts";
import { and, eq, isNull, sql } from "drizzle-orm";
import { log } from "../../../shared/log.ts";
import type { Change } from "../database.ts";
import { relayPorts, relays } from "../tables/networks.ts";
import { DAY_MS } from "../../../shared/time.ts";

/** How long a port that was released is kept from other organizations. */
const RELAY_PORT_COOL_DOWN_MS = DAY_MS;

/** With less than this part of its ports free, the operator is warned in the log. */
const FEW_PORTS = 0.1;

export interface PortRequest {
  protocol: "udp" | "tcp";
  orgId: string;
  /** The network or tunnel. Its row is locked by the caller: two requests for one owner must take turns. */
  ownerId: string;
  /** Left out: the relay that the owner has a port on, else the connected one with the most free ports. */
  relayId?: string | undefined;
  /** Left out: the port that the owner has or had last, else any free one. */
  wantedPort?: number | undefined;
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
  /** `wantedPort` is reserved, or was by another organization within the last day. */
  | "port_taken"
  /** `wantedPort` is not among the ports that the relay (or any relay) hands out. */
  | "port_outside_range";

/**
 * Reserves a port, or returns the one that the owner has already if it fits the request. An owner has one
 * port at a time: one that no longer fits is released. After a refusal nothing has changed.
 */
export async function reservePort(
  change: Pick<Change, "tx">,
  request: PortRequest,
): Promise<ReservedPort | PortRefusal> {
  const { tx } = change;
  const { protocol, orgId, ownerId } = request;
  const held = await findReservedPort(change, ownerId);
  if (held?.isInRange && fits(held, request)) return { relayId: held.relayId, port: held.port };
  if (held) await releasePort(change, ownerId);
  // Each turn that finds its port taken meanwhile has seen another request succeed, so this comes to an end.
  for (;;) {
    const candidate = await findCandidate(change, {
      ...request,
      relayId: request.relayId ?? (held?.isInRange ? held.relayId : undefined),
    });
    if (typeof candidate === "string") {
      if (held) await undoRelease(change, held);
      return candidate;
    }
    const { relayId, port, freePorts, ports } = candidate;
    if (freePorts < ports * FEW_PORTS)
      log("warn", "relay_ports_low", { relayId, freePorts, ports });
    const [taken] = await tx
      .insert(relayPorts)
      .values({ relayId, port, protocol, orgId, ownerId })
      .onConflictDoUpdate({
        target: [relayPorts.relayId, relayPorts.protocol, relayPorts.port],
        set: { orgId, ownerId, releasedAt: null },
        setWhere: isAvailable(orgId),
      })
      .returning({ relayId: relayPorts.relayId, port: relayPorts.port });
    if (taken) return taken;
  }
}

/** From now on the port is its organization's to reserve again, and after a day everybody's. */
export async function releasePort({ tx }: Pick<Change, "tx">, ownerId: string): Promise<void> {
  await tx
    .update(relayPorts)
    .set({ releasedAt: sql`now()` })
    .where(and(eq(relayPorts.ownerId, ownerId), isNull(relayPorts.releasedAt)));
}

/** The same for all ports of an organization: its networks and its tunnels. */
export async function releasePorts({ tx }: Pick<Change, "tx">, orgId: string): Promise<void> {
  await tx
    .update(relayPorts)
    .set({ releasedAt: sql`now()` })
    .where(and(eq(relayPorts.orgId, orgId), isNull(relayPorts.releasedAt)));
}

interface OwnedPort extends ReservedPort {
  protocol: "udp" | "tcp";
  /** Whether the relay still hands it out: its operator may have changed the range. */
  isInRange: boolean;
}

async function findReservedPort(
  { tx }: Pick<Change, "tx">,
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
    .where(and(eq(relayPorts.ownerId, ownerId), isNull(relayPorts.releasedAt)));
  return held ?? null;
}

function fits(held: OwnedPort, { protocol, relayId, wantedPort }: PortRequest): boolean {
  return (
    held.protocol === protocol &&
    (relayId === undefined || relayId === held.relayId) &&
    (wantedPort === undefined || wantedPort === held.port)
  );
}

/** Takes back a release of the same transaction, whose lock kept the row from everybody else. */
async function undoRelease({ tx }: Pick<Change, "tx">, held: OwnedPort): Promise<void> {
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

/** Of a row in `relay_ports`. */
function isAvailable(orgId: string) {
  return sql`${relayPorts.releasedAt} is not null and (${relayPorts.orgId} = ${orgId} or ${relayPorts.releasedAt} <= ${ago(RELAY_PORT_COOL_DOWN_MS)})`;
}

type CandidateRow = Record<"port" | "free_ports" | "ports", number> & { relay_id: string };

interface Candidate extends ReservedPort {
  /** Of this protocol, at the relay: for this organization, and in all. */
  freePorts: number;
  ports: number;
}

/**
 * A port that nobody else had is preferred, one that the owner had before is preferred to that. Among equals
 * chance decides, so that requests at the same moment rarely meet.
 */
async function findCandidate(
  { tx }: Pick<Change, "tx">,
  { protocol, orgId, ownerId, relayId, wantedPort }: PortRequest,
): Promise<Candidate | PortRefusal> {
  const isEligible = relayId === undefined ? sql`true` : sql`${relays.id} = ${relayId}`;
  const { rows } = await tx.execute<CandidateRow>(sql`
    with free as (
      select ${relays.id} as relay_id, candidate.port as port,
        ${relays.connectedEpoch} is not null as is_connected,
        ${relayPorts.ownerId} is not distinct from ${ownerId}::uuid as was_owned,
        ${relayPorts.port} is null as is_unused,
        ${relays.lastPort} - ${relays.firstPort} + 1 as ports,
        (count(*) over (partition by ${relays.id}))::int as free_ports
      from ${relays}
      cross join lateral generate_series(${relays.firstPort}, ${relays.lastPort}) as candidate(port)
      left join ${relayPorts} on ${relayPorts.relayId} = ${relays.id}
        and ${relayPorts.protocol} = ${protocol} and ${relayPorts.port} = candidate.port
      where ${isEligible} and (${relayPorts.port} is null or (${isAvailable(orgId)}))
    )
    select relay_id, port, free_ports, ports from free
    where ${wantedPort === undefined ? sql`true` : sql`port = ${wantedPort}`}
    order by was_owned desc, is_connected desc, free_ports desc, relay_id, is_unused desc, random()
    limit 1`);
  const [row] = rows;
  if (row) {
    const { relay_id: relayId, port, free_ports: freePorts, ports } = row;
    return { relayId, port, freePorts, ports };
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
  return isInRange ? "port_taken" : "port_outside_range";
}
