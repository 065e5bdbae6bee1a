/** Totals of the rows of all organizations, for the operator. Read with one statement; none is about a single organization. */
import { sql } from "drizzle-orm";
import { z } from "zod";
import type { Database } from "../database.ts";
import { outbox } from "../tables/outbox.ts";
import { tunnels } from "../tables/tunnels.ts";

const count = z.coerce.number();

const ServiceTotals = z.object({
  /** Neither deleted nor expired. */
  tunnels: count,
  activeTunnels: count,
  connectedAgents: count,
  /** Messages that wait for their delivery. */
  waitingMails: count,
  waitingOthers: count,
  parked: count,
  /** The age of the oldest message that waits; 0 when none does. */
  oldestMailSeconds: count,
  oldestOtherSeconds: count,
});
type ServiceTotals = z.output<typeof ServiceTotals>;

export async function findServiceTotals({ query }: Database): Promise<ServiceTotals> {
  const isMail = sql`${outbox.kind} = 'mail' and ${outbox.parkedAt} is null`;
  const isOther = sql`${outbox.kind} <> 'mail' and ${outbox.parkedAt} is null`;
  const age = (which: typeof isMail) =>
    sql`coalesce(extract(epoch from now() - min(${outbox.createdAt}) filter (where ${which})), 0)`;
  // The live tunnels are those of a partial index.
  const { rows } = await query.execute(sql`
    select live.*, queue.* from
      (select count(*) as "tunnels",
          count(*) filter (where ${tunnels.status} = 'active') as "activeTunnels",
          count(*) filter (where ${tunnels.agentConnected}) as "connectedAgents"
        from ${tunnels} where ${tunnels.deletedAt} is null and ${tunnels.status} <> 'expired') as live,
      (select count(*) filter (where ${isMail}) as "waitingMails",
          count(*) filter (where ${isOther}) as "waitingOthers",
          count(${outbox.parkedAt}) as "parked",
          ${age(isMail)} as "oldestMailSeconds",
          ${age(isOther)} as "oldestOtherSeconds"
        from ${outbox}) as queue`);
  return ServiceTotals.parse(rows[0]);
}
