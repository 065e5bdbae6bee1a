/** Relays, their public ports, and the private networks that use them. */
import { sql } from "drizzle-orm";
import {
  boolean,
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

/** Relays, as each described itself when it last connected. */
export const relays = pgTable("relays", {
  id: text().primaryKey(),
  /** The host that remote peers and TCP visitors connect to. */
  host: text().notNull(),
  /** The URL that agents connect to. */
  url: text().notNull(),
  firstPort: integer().notNull(),
  lastPort: integer().notNull(),
  /** Identifies the relay process that is connected; null: none is. */
  connectedEpoch: text(),
  lastSeenAt: timestamptz().notNull().defaultNow(),
});

/**
 * Ports that are or were reserved. The primary key decides concurrent requests. A row is kept after the release, so that
 * a port's visitors don't reach another organization's service within a day.
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
    /** The network or tunnel that has the port or had it last. */
    ownerId: uuid().notNull(),
    /** Whether the organization's agents have had a ticket for the port, so that visitors may know it. */
    wasServed: boolean().notNull().default(true),
    /** Whether the owner can get another port instead: it did not ask for this one, and has had no ticket for it. */
    isReplaceable: boolean().notNull().default(false),
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
    /** This column and the next three are null until the server is registered. */
    relayId: text().references(() => relays.id),
    serverPublicKey: text(),
    serverListenPort: integer(),
    reservedUdpPort: integer(),
    /** `host:port` of a server that is reached without the relay. */
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
