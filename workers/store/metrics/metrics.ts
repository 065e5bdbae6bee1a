/** Reads the traffic of an organization's tunnels. */
import { and, asc, count, desc, eq, gte, lt, sql, sum } from "drizzle-orm";
import type { Counters } from "../../../durable-objects/tunnel/metrics/outcomes.ts";
import type { Metric } from "../../../protocol/schemas/metrics.ts";
import type { Span } from "./metric-windows.ts";
import type { Database } from "../database.ts";
import { endedCounters, traffic, tunnelCounters } from "../tables/metrics.ts";
import { tunnels } from "../tables/tunnels.ts";
import { isUndeletedTunnelIn } from "../tunnels/undeleted-tunnels.ts";

/** A scrape has series of its own for this many tunnels, the busiest first. Totals cover all tunnels. */
export const SCRAPE_MAX_TUNNELS = 200;

/** A breakdown lists this many tunnels. */
const BREAKDOWN_MAX_TUNNELS = 20;

const COLUMN = {
  requests: traffic.requests,
  bytes_in: traffic.bytesIn,
  bytes_out: traffic.bytesOut,
} as const satisfies Record<Metric, unknown>;

function isInSpan(orgId: string, { grain, fromMs, untilMs }: Span) {
  return and(
    eq(traffic.orgId, orgId),
    eq(traffic.grain, grain),
    gte(traffic.startsAt, new Date(fromMs)),
    lt(traffic.startsAt, new Date(untilMs)),
  );
}

/** Traffic of one tunnel, or of all tunnels of the organization. */
function isTunnelTraffic(orgId: string, tunnelId: string | undefined, span: Span) {
  return and(
    isInSpan(orgId, span),
    tunnelId === undefined ? undefined : eq(traffic.tunnelId, tunnelId),
  );
}

/** @returns sums by the start of their bucket in ms since the epoch; buckets without traffic are missing. */
export async function findSeries(
  { query }: Database,
  orgId: string,
  { tunnelId, metric }: { tunnelId: string | undefined; metric: Metric },
  span: Span,
): Promise<Map<number, number>> {
  const { bucketMs } = span;
  const startMs = sql`extract(epoch from ${traffic.startsAt})::bigint * 1000`;
  const bucket = sql`${startMs} / ${sql.raw(String(bucketMs))} * ${sql.raw(String(bucketMs))}`;
  const rows = await query
    .select({ atMs: bucket.mapWith(Number), value: sum(COLUMN[metric]).mapWith(Number) })
    .from(traffic)
    .where(isTunnelTraffic(orgId, tunnelId, span))
    .groupBy(bucket);
  return new Map(rows.map(({ atMs, value }) => [atMs, value]));
}

export interface TunnelTraffic extends Record<Metric, number> {
  tunnel_id: string;
  subdomain: string;
}

/** The tunnels with the most requests in the span, including deleted ones. */
export function listTunnelTraffic(
  { query }: Database,
  orgId: string,
  tunnelId: string | undefined,
  span: Span,
): Promise<TunnelTraffic[]> {
  // Not the names of columns: Drizzle writes an alias without its table.
  const total = (metric: Metric) =>
    sql`${sum(COLUMN[metric])}`.mapWith(Number).as(`total_of_${metric}`);
  // The names are looked up for the listed tunnels alone.
  const busiest = query
    .select({
      tunnelId: traffic.tunnelId,
      requests: total("requests"),
      bytes_in: total("bytes_in"),
      bytes_out: total("bytes_out"),
    })
    .from(traffic)
    .where(isTunnelTraffic(orgId, tunnelId, span))
    .groupBy(traffic.tunnelId)
    .orderBy(desc(sum(traffic.requests)), asc(traffic.tunnelId))
    .limit(BREAKDOWN_MAX_TUNNELS)
    .as("busiest");
  return query
    .select({
      tunnel_id: tunnels.id,
      subdomain: tunnels.subdomain,
      requests: busiest.requests,
      bytes_in: busiest.bytes_in,
      bytes_out: busiest.bytes_out,
    })
    .from(busiest)
    .innerJoin(tunnels, eq(tunnels.id, busiest.tunnelId))
    .orderBy(desc(busiest.requests), asc(tunnels.id));
}

/** @returns the sum of each metric over the whole span. */
export async function findSums(
  { query }: Database,
  orgId: string,
  span: Span,
): Promise<Record<Metric, number>> {
  const total = (metric: Metric) => sql`coalesce(${sum(COLUMN[metric])}, 0)`.mapWith(Number);
  const [sums] = await query
    .select({
      requests: total("requests"),
      bytes_in: total("bytes_in"),
      bytes_out: total("bytes_out"),
    })
    .from(traffic)
    .where(isInSpan(orgId, span));
  return sums!;
}

export interface TunnelCounts {
  total: number;
  active: number;
}

/** Counts the tunnels that are not deleted. */
export async function countTunnels({ query }: Database, orgId: string): Promise<TunnelCounts> {
  const [counts] = await query
    .select({
      total: count(),
      active: sql`count(*) filter (where ${tunnels.status} = 'active')`.mapWith(Number),
    })
    .from(tunnels)
    .where(isUndeletedTunnelIn(orgId));
  return counts!;
}

/** Totals of all tunnels that the organization has ever had. A single statement, so that each is counted exactly once. */
export async function findCounters({ query }: Database, orgId: string): Promise<Counters> {
  const { rows } = await query.execute<{ name: string; total: string }>(sql`
    select name, sum(total::bigint)::text as total from (
      select ${tunnelCounters.counters} from ${tunnelCounters}
      where ${tunnelCounters.orgId} = ${orgId} and ${tunnelCounters.foldedAt} is null
      union all
      select ${endedCounters.counters} from ${endedCounters}
      where ${endedCounters.orgId} = ${orgId}) as stored,
      jsonb_each_text(stored.counters) as counted(name, total)
    group by name`);
  return Object.fromEntries(rows.map(({ name, total }) => [name, Number(total)]));
}

export interface CountedTunnel {
  id: string;
  subdomain: string;
  agentConnected: boolean;
  counters: Counters | null;
}

/** The tunnels with the most requests, deleted ones excluded. */
export function listBusiestTunnels({ query }: Database, orgId: string): Promise<CountedTunnel[]> {
  const { id, subdomain, agentConnected, totalRequests } = tunnels;
  // The counters, which are long, are read for the listed tunnels alone.
  const busiest = query
    .select({ id, subdomain, agentConnected, totalRequests })
    .from(tunnels)
    .where(isUndeletedTunnelIn(orgId))
    .orderBy(desc(totalRequests), asc(id))
    .limit(SCRAPE_MAX_TUNNELS)
    .as("busiest");
  return query
    .select({
      id: busiest.id,
      subdomain: busiest.subdomain,
      agentConnected: busiest.agentConnected,
      counters: tunnelCounters.counters,
    })
    .from(busiest)
    .leftJoin(tunnelCounters, eq(tunnelCounters.tunnelId, busiest.id))
    .orderBy(desc(busiest.totalRequests), asc(busiest.id));
}
