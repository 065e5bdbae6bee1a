/** Tunnels, and the public host names that lead to them. */
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
import type { AllowList } from "../../../protocol/schemas/access/identity-gate.ts";
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
    /** The requested name; `subdomain` is the whole label with the project's suffix. */
    name: text().notNull(),
    subdomain: text().notNull(),
    /** An agent asked for any name: no other agent will ask for this one, unless a user has written it down. */
    hasRandomName: boolean().notNull().default(false),
    protocol: text({ enum: ["http", "https", "websocket", "tcp"] }).notNull(),
    localPort: integer().notNull(),
    status: text({ enum: ["inactive", "active", "offline", "expired"] })
      .notNull()
      .default("inactive"),
    /** When it was stopped: no agent may serve it until it is started. null: not stopped. */
    stoppedAt: timestamptz(),
    expiresAt: timestamptz(),
    /** The expiry that was requested, whatever the plan allows. null: none. */
    requestedExpiresAt: timestamptz("asked_end"),
    deletedAt: timestamptz(),
    createdAt: timestamptz().notNull().defaultNow(),
    agentConnected: boolean().notNull().default(false),
    /** The token whose agent serves this tunnel or served it last. */
    connectedTokenId: uuid().references((): AnyPgColumn => tokens.id),
    lastSeenAt: timestamptz(),
    bytesIn: counter(),
    bytesOut: counter(),
    totalRequests: counter(),
    /** Sequence number of the newest report in this row; an older report changes nothing. */
    reportSequence: counter(),
    /** As last reported by its object; before the first report, as last set. */
    maintenance: boolean().notNull().default(false),
    /** Version of the columns below, of maintenance and of stopping: the object applies the highest. */
    settingsVersion: integer().notNull().default(0),
    basicAuthUsername: text(),
    /** Argon2id, in PHC form. */
    basicAuthHash: text(),
    policy: jsonb().$type<TrafficPolicy>(),
    identityGate: jsonb().$type<AllowList>(),
    /** null: the defaults. */
    captureSettings: jsonb("capturing").$type<CaptureSettings>(),
    /** The tunnel has a password or sign-in that the plan lacks: it is kept, and every visitor is refused. */
    isBeyondPlan: boolean().notNull().default(false),
    /** CIDR blocks that visitors may come from, canonical. null: any address. */
    allowedCidrs: jsonb().$type<string[]>(),
    /** Where visitors of a tunnel of protocol `tcp` connect to. */
    relayId: text().references((): AnyPgColumn => relays.id),
    publicPort: integer(),
    /** How many objects its visitors are spread over. */
    shards: integer().notNull().default(1),
  },
  (table) => [
    uniqueIndex("tunnels_subdomain_key")
      .on(table.subdomain)
      .where(sql`${table.deletedAt} is null and ${table.status} <> 'expired'`),
    index("tunnels_org_id_idx")
      .on(table.orgId, table.createdAt)
      .where(sql`${table.deletedAt} is null`),
    index("tunnels_project_id_idx").on(table.projectId),
    index("tunnels_connected_token_id_idx").on(table.connectedTokenId),
    index("tunnels_expires_at_idx")
      .on(table.expiresAt)
      .where(sql`${table.deletedAt} is null and ${table.status} <> 'expired'`),
    index("tunnels_unused_random_names_idx")
      .on(table.lastSeenAt)
      .where(
        sql`${table.hasRandomName} and not ${table.agentConnected} and ${table.deletedAt} is null and ${table.status} <> 'expired'`,
      ),
    index("tunnels_expired_idx")
      .on(table.expiresAt)
      .where(sql`${table.deletedAt} is null and ${table.status} = 'expired'`),
    index("tunnels_ended_at_idx")
      .on(sql`coalesce(${table.deletedAt}, ${table.expiresAt})`)
      .where(sql`${table.deletedAt} is not null or ${table.status} = 'expired'`),
    /** The ids of a tunnel's captured requests end with the same 12 characters. */
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
    check("tunnels_shards", sql`${table.shards} between 1 and 16`),
    check("tunnels_local_port", sql`${table.localPort} between 1 and 65535`),
    check("tunnels_subdomain", sql`${table.subdomain} ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'`),
  ],
);

/**
 * A public host name: a label under the service's own domain, or a custom domain. Rows are kept when the name becomes free,
 * so that the version keeps increasing and a stale copy never replaces a newer one.
 */
export const hostnames = pgTable(
  "hostnames",
  {
    host: text().primaryKey(),
    tunnelId: uuid().references(() => tunnels.id),
    version: integer().notNull().default(1),
    /** The organization that has reserved the name, or had it last. */
    heldByOrgId: uuid().references(() => organizations.id, { onDelete: "set null" }),
    /** When other organizations can claim the name. null: a reservation is in force, if an organization is set. */
    heldUntil: timestamptz(),
  },
  (table) => [
    index("hostnames_tunnel_id_idx").on(table.tunnelId),
    index("hostnames_held_by_org_id_idx").on(table.heldByOrgId, table.heldUntil),
  ],
);

export type TunnelRow = typeof tunnels.$inferSelect;
