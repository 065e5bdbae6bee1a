/** Relays' rows: the address and the ports that each relay sent when it last connected. */
import { and, asc, count, eq, isNotNull, isNull, sql } from "drizzle-orm";
import type { RelayDescription } from "../../../durable-objects/rpc.ts";
import type { Database } from "../database.ts";
import { relayPorts, relays } from "../tables/networks.ts";
import type { Transaction } from "../transaction.ts";

export type RelayRow = typeof relays.$inferSelect;

export async function findRelay({ query }: Database, id: string): Promise<RelayRow | null> {
  const [relay] = await query.select().from(relays).where(eq(relays.id, id));
  return relay ?? null;
}

/** @returns null without a relay. */
export async function findRelayHost(
  tx: Transaction,
  relayId: string | null,
): Promise<string | null> {
  if (relayId === null) return null;
  const [relay] = await tx.select({ host: relays.host }).from(relays).where(eq(relays.id, relayId));
  return relay?.host ?? null;
}

export async function listRelayIds({ query }: Database): Promise<string[]> {
  const rows = await query.select({ id: relays.id }).from(relays).orderBy(asc(relays.id));
  return rows.map(({ id }) => id);
}

/** Those that are connected to the API. */
export function listConnectedRelays({ query }: Database): Promise<Pick<RelayRow, "id" | "url">[]> {
  return query
    .select({ id: relays.id, url: relays.url })
    .from(relays)
    .where(isNotNull(relays.connectedEpoch))
    .orderBy(asc(relays.id));
}

/** Replaces the description: an operator may have moved the relay or changed its ports. */
export async function saveRelay(
  { query }: Database,
  { relayId, epoch, ...description }: RelayDescription,
): Promise<void> {
  const values = { ...description, connectedEpoch: epoch, lastSeenAt: sql`now()` };
  await query
    .insert(relays)
    .values({ id: relayId, ...values })
    .onConflictDoUpdate({ target: relays.id, set: values });
}

/** Does nothing when another process of the relay has connected since. */
export async function markRelayDisconnected(
  { query }: Database,
  relayId: string,
  epoch: string,
): Promise<void> {
  await query
    .update(relays)
    .set({ connectedEpoch: null, lastSeenAt: sql`now()` })
    .where(and(eq(relays.id, relayId), eq(relays.connectedEpoch, epoch)));
}

/** Counts the ports of networks and tunnels; released ports are not counted. */
export async function countReservedPorts(
  { query }: Database,
  relayId: string,
): Promise<{ udp: number; tcp: number }> {
  const rows = await query
    .select({ protocol: relayPorts.protocol, ports: count() })
    .from(relayPorts)
    .where(and(eq(relayPorts.relayId, relayId), isNull(relayPorts.releasedAt)))
    .groupBy(relayPorts.protocol);
  const byProtocol = new Map(rows.map(({ protocol, ports }) => [protocol, ports]));
  return { udp: byProtocol.get("udp") ?? 0, tcp: byProtocol.get("tcp") ?? 0 };
}
