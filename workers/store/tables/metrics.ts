/**
 * Traffic of tunnels. No row has a foreign key to its organization: checking it would wait for changes of the
 * organization's row, and so delay a tunnel's report.
 */
import { sql } from "drizzle-orm";
import { bigint, check, index, jsonb, pgTable, primaryKey, text, uuid } from "drizzle-orm/pg-core";
import { timestamptz } from "./columns.ts";
import type { Counters } from "../../../durable-objects/tunnel/metrics/outcomes.ts";
import { tokens } from "./tokens.ts";
import { tunnels } from "./tunnels.ts";

const tunnelId = () =>
  uuid()
    .notNull()
    .references(() => tunnels.id, { onDelete: "cascade" });

const total = () => bigint({ mode: "number" }).notNull();

/**
 * The traffic of a tunnel in one minute or hour of UTC: totals, as the tunnel reports them. Rows are deleted by their age,
 * long before their tunnel's row. A foreign key would need another index on the table with the most writes.
 */
export const traffic = pgTable(
  "traffic",
  {
    orgId: uuid().notNull(),
    grain: text({ enum: ["minute", "hour"] }).notNull(),
    startsAt: timestamptz().notNull(),
    tunnelId: uuid().notNull(),
    requests: total(),
    bytesIn: total(),
    bytesOut: total(),
  },
  (table) => [
    primaryKey({ columns: [table.orgId, table.grain, table.startsAt, table.tunnelId] }),
    index("traffic_grain_starts_at_idx").on(table.grain, table.startsAt),
    check("traffic_grain", sql`${table.grain} in ('minute', 'hour')`),
  ],
);

/** Named totals of one tunnel since it was created. */
export const tunnelCounters = pgTable(
  "tunnel_counters",
  {
    tunnelId: tunnelId().primaryKey(),
    orgId: uuid().notNull(),
    /** Sequence number of the newest report in this row; an older report changes nothing. */
    sequence: total(),
    counters: jsonb().$type<Counters>().notNull(),
    /** When the tunnel was deleted or expired. */
    endedAt: timestamptz(),
    /** When its totals were added to `ended_counters`; later reports are ignored. */
    foldedAt: timestamptz(),
  },
  (table) => [
    index("tunnel_counters_org_id_idx")
      .on(table.orgId)
      .where(sql`${table.foldedAt} is null`),
    index("tunnel_counters_ended_at_idx")
      .on(table.endedAt)
      .where(sql`${table.foldedAt} is null`),
  ],
);

/** The summed totals of an organization's ended tunnels. */
export const endedCounters = pgTable("ended_counters", {
  orgId: uuid().primaryKey(),
  counters: jsonb().$type<Counters>().notNull(),
});

/** The traffic of a token's agents at each tunnel in a month (UTC): totals, as the tunnel reports them. */
export const tokenUsage = pgTable(
  "token_usage",
  {
    tokenId: uuid()
      .notNull()
      .references(() => tokens.id, { onDelete: "cascade" }),
    /** The token's. A trigger sets it in rows of an earlier version, which does not know the column. */
    orgId: uuid().notNull(),
    /** `2026-11` */
    month: text().notNull(),
    tunnelId: tunnelId(),
    bytes: total(),
    requests: total(),
  },
  (table) => [
    primaryKey({ columns: [table.tokenId, table.month, table.tunnelId] }),
    index("token_usage_org_id_idx").on(table.orgId, table.month),
    index("token_usage_tunnel_id_idx").on(table.tunnelId),
    check("token_usage_month", sql`${table.month} ~ '^[0-9]{4}-[0-9]{2}$'`),
  ],
);
