/** Relays, the ports they hand out, and the private networks whose traffic goes through them. */
import { sql } from "drizzle-orm";
import {
  check,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from "drizzle-orm/pg-core";
import { timestamptz } from "./columns.ts";
import { organizations } from "./organizations.ts";

/** As each relay described itself when it connected last. */
export const relays = pgTable("relays", {
  id: text().primaryKey(),
  /** What remote peers and TCP visitors are given. */
  host: text().notNull(),
  /** What agents connect to. */
  url: text().notNull(),
  firstPort: integer().notNull(),
  lastPort: integer().notNull(),
  /** Of the run of the relay that is connected now; null: none is. */
  connectedEpoch: text(),
  lastSeenAt: timestamptz().notNull().defaultNow(),
});

/**
 * Ports that are handed out or were. The primary key decides every race. A row stays after its release, so that
 * the port's old visitors do not meet another organization's service within a day.
 */
export const relayPorts = pgTable(
  "relay_ports",
  {
    relayId: text()
      .notNull()
      .references(() => relays.id),
    protocol: text({ enum: ["udp", "tcp"] }).notNull(),
    port: integer().notNull(),
    orgId: uuid().references(() => organizations.id, { onDelete: "set null" }),
    /** The network or tunnel that has it, or had it last. */
    ownerId: uuid().notNull(),
    releasedAt: timestamptz(),
  },
  (table) => [
    primaryKey({ columns: [table.relayId, table.protocol, table.port] }),
    uniqueIndex("relay_ports_owner_key")
      .on(table.ownerId)
      .where(sql`${table.releasedAt} is null`),
    index("relay_ports_org_id_idx").on(table.orgId),
    check("relay_ports_protocol", sql`${table.protocol} in ('udp', 'tcp')`),
  ],
);

export const privateNetworks = pgTable(
  "private_networks",
  {
    id: uuid().primaryKey().defaultRandom(),
    orgId: uuid()
      .notNull()
      .references(() => organizations.id, { onDelete: "cascade" }),
    name: text().notNull(),
    /** Canonical: `10.88.0.0/24`. */
    cidr: text().notNull(),
    /** Null until the server is registered, as are the next three. */
    relayId: text().references(() => relays.id),
    serverPublicKey: text(),
    serverListenPort: integer(),
    reservedUdpPort: integer(),
    /** Of a server that is reached without the relay. */
    ownEndpoint: text(),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    uniqueIndex("private_networks_org_id_name_key").on(table.orgId, table.name),
    check(
      "private_networks_server",
      sql`(${table.serverPublicKey} is null) = (${table.serverListenPort} is null)`,
    ),
  ],
);

export const privateNetworkDevices = pgTable(
  "private_network_devices",
  {
    id: uuid().primaryKey().defaultRandom(),
    networkId: uuid()
      .notNull()
      .references(() => privateNetworks.id, { onDelete: "cascade" }),
    name: text().notNull(),
    publicKey: text().notNull(),
    /** Position in the network's block: the address is its first address plus this. */
    hostNumber: integer().notNull(),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    uniqueIndex("private_network_devices_public_key_key").on(table.networkId, table.publicKey),
    uniqueIndex("private_network_devices_host_number_key").on(table.networkId, table.hostNumber),
  ],
);
