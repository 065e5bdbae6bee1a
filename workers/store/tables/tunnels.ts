/** What visitors reach: projects, tunnels and the public names that lead to them. */
import { sql } from "drizzle-orm";
import {
  boolean,
  check,
  index,
  integer,
  jsonb,
  pgTable,
  text,
  uniqueIndex,
  uuid,
  type AnyPgColumn,
} from "drizzle-orm/pg-core";
import { counter, timestamptz } from "./columns.ts";
import type { CaptureSettings } from "../../../protocol/schemas/inspector/captures.ts";
import type { AllowList } from "../../../protocol/schemas/access/edge-auth.ts";
import type { TrafficPolicy } from "../../../protocol/schemas/access/policies.ts";
import { relays } from "./networks.ts";
import { organizations, projects } from "./organizations.ts";
import { tokens } from "./tokens.ts";

export const tunnels = pgTable(
  "tunnels",
  {
    id: uuid().primaryKey().defaultRandom(),
    orgId: uuid()
      .notNull()
      .references(() => organizations.id, { onDelete: "cascade" }),
    projectId: uuid()
      .notNull()
      .references(() => projects.id),
    /** What was asked for; `subdomain` is the whole label, the project's suffix included. */
    name: text().notNull(),
    subdomain: text().notNull(),
    protocol: text({ enum: ["http", "https", "websocket", "tcp"] }).notNull(),
    localPort: integer().notNull(),
    status: text({ enum: ["inactive", "active", "offline", "expired"] })
      .notNull()
      .default("inactive"),
    /** By its owner, until it is started: no agent gets in. */
    stoppedAt: timestamptz(),
    expiresAt: timestamptz(),
    /** What of that was asked for, whatever the plan grants. null: nothing was. */
    requestedExpiresAt: timestamptz("asked_end"),
    deletedAt: timestamptz(),
    createdAt: timestamptz().notNull().defaultNow(),
    agentConnected: boolean().notNull().default(false),
    /** The token whose agent serves this tunnel, or served it last. */
    connectedTokenId: uuid().references((): AnyPgColumn => tokens.id),
    lastSeenAt: timestamptz(),
    bytesIn: counter(),
    bytesOut: counter(),
    totalRequests: counter(),
    /** Of the newest report that was written here; an older one changes nothing. */
    reportSequence: counter(),
    /** What its object said last; before any agent came, what it was told. */
    maintenance: boolean().notNull().default(false),
    /** Of everything below, of maintenance and of stopping: the object keeps what has the highest. */
    settingsVersion: integer().notNull().default(0),
    basicAuthUsername: text(),
    /** Argon2id, in PHC form. */
    basicAuthHash: text(),
    policy: jsonb().$type<TrafficPolicy>(),
    identityGate: jsonb().$type<AllowList>(),
    /** null: as it is for a new tunnel. */
    captureSettings: jsonb("capturing").$type<CaptureSettings>(),
    /** A password or sign-in that the plan lacks by now: both stay, and nobody gets through. */
    isBeyondPlan: boolean().notNull().default(false),
    /** Blocks that visitors may come from, canonical. null: from anywhere. */
    allowedCidrs: jsonb().$type<string[]>(),
    /** Of a tunnel of protocol `tcp`: where its visitors connect to. */
    relayId: text().references((): AnyPgColumn => relays.id),
    publicPort: integer(),
  },
  (table) => [
    uniqueIndex("tunnels_subdomain_key")
      .on(table.subdomain)
      .where(sql`${table.deletedAt} is null and ${table.status} <> 'expired'`),
    index("tunnels_org_id_idx")
      .on(table.orgId, table.createdAt)
      .where(sql`${table.deletedAt} is null`),
    index("tunnels_connected_token_id_idx").on(table.connectedTokenId),
    index("tunnels_expires_at_idx")
      .on(table.expiresAt)
      .where(sql`${table.deletedAt} is null and ${table.status} <> 'expired'`),
    /** What the ids of its captured requests end with. */
    index("tunnels_capture_key_idx").on(table.orgId, sql`right(${table.id}::text, 12)`),
    check("tunnels_protocol", sql`${table.protocol} in ('http', 'https', 'websocket', 'tcp')`),
    check("tunnels_status", sql`${table.status} in ('inactive', 'active', 'offline', 'expired')`),
    check(
      "tunnels_basic_auth",
      sql`(${table.basicAuthUsername} is null) = (${table.basicAuthHash} is null)`,
    ),
    check(
      "tunnels_public_port",
      sql`(${table.relayId} is null) = (${table.publicPort} is null) and (${table.publicPort} is null or ${table.protocol} = 'tcp')`,
    ),
    check("tunnels_local_port", sql`${table.localPort} between 1 and 65535`),
    check("tunnels_subdomain", sql`${table.subdomain} ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'`),
  ],
);

/**
 * The claim of a public name: a label under the service's own domain, or a whole custom domain. Rows stay
 * when the name is free again, so that the version goes on growing and no stale copy can win.
 */
export const hostnames = pgTable(
  "hostnames",
  {
    host: text().primaryKey(),
    tunnelId: uuid().references(() => tunnels.id),
    version: integer().notNull().default(1),
    /** Who has reserved the name. */
    heldByOrgId: uuid().references(() => organizations.id, { onDelete: "set null" }),
    /** Of a reservation that was given up: nobody else gets the name before. null: it stands. */
    heldUntil: timestamptz(),
  },
  (table) => [
    index("hostnames_tunnel_id_idx").on(table.tunnelId),
    index("hostnames_held_by_org_id_idx").on(table.heldByOrgId),
  ],
);

export type TunnelRow = typeof tunnels.$inferSelect;
