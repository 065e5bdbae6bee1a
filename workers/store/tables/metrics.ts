/**
 * What tunnels have counted. No row here refers to its organization: the check of that would wait for whoever
 * changes the organization, and hold up a tunnel's report.
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

const counter = () => bigint({ mode: "number" }).notNull();

/** What went through a tunnel in a minute or an hour of UTC: totals of it, as the tunnel counts them. */
export const traffic = pgTable(
  "traffic",
  {
    orgId: uuid().notNull(),
    grain: text({ enum: ["minute", "hour"] }).notNull(),
    startsAt: timestamptz().notNull(),
    tunnelId: tunnelId(),
    requests: counter(),
    bytesIn: counter(),
    bytesOut: counter(),
  },
  (table) => [
    primaryKey({ columns: [table.orgId, table.grain, table.startsAt, table.tunnelId] }),
    index("traffic_grain_starts_at_idx").on(table.grain, table.startsAt),
    check("traffic_grain", sql`${table.grain} in ('minute', 'hour')`),
  ],
);

/** Totals of one tunnel by name, since it was made. */
export const tunnelCounters = pgTable(
  "tunnel_counters",
  {
    tunnelId: tunnelId().primaryKey(),
    orgId: uuid().notNull(),
    /** Of the newest report that was written here; an older one changes nothing. */
    sequence: counter(),
    counters: jsonb().$type<Counters>().notNull(),
    /** When the tunnel was deleted or expired. */
    endedAt: timestamptz(),
    /** Its totals are among `ended_counters` from then on, and reports come too late. */
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

/** The same of all those tunnels of an organization that are no more. */
export const endedCounters = pgTable("ended_counters", {
  orgId: uuid().primaryKey(),
  counters: jsonb().$type<Counters>().notNull(),
});

/** What came of a token's agents at each tunnel in a month (UTC): totals, as the tunnel counts them. */
export const tokenUsage = pgTable(
  "token_usage",
  {
    tokenId: uuid()
      .notNull()
      .references(() => tokens.id, { onDelete: "cascade" }),
    /** `2026-11` */
    month: text().notNull(),
    tunnelId: uuid()
      .notNull()
      .references(() => tunnels.id, { onDelete: "cascade" }),
    bytes: bigint({ mode: "number" }).notNull(),
    requests: bigint({ mode: "number" }).notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tokenId, table.month, table.tunnelId] }),
    check("token_usage_month", sql`${table.month} ~ '^[0-9]{4}-[0-9]{2}$'`),
  ],
);
