/** Custom domains and reserved subdomains of organizations. */
import { sql } from "drizzle-orm";
import { check, index, pgTable, text, uniqueIndex, uuid } from "drizzle-orm/pg-core";
import { timestamptz } from "./columns.ts";
import { organizations } from "./organizations.ts";
import { tunnels } from "./tunnels.ts";

/** Claims of custom domains. Several organizations may claim a domain; at most one has verified it. */
export const domains = pgTable(
  "domains",
  {
    id: uuid().primaryKey().defaultRandom(),
    orgId: uuid()
      .notNull()
      .references(() => organizations.id, { onDelete: "cascade" }),
    /** In lower case, as A-labels. */
    domain: text().notNull(),
    /** Not a secret: it is published in the DNS. */
    verificationToken: text().notNull(),
    verifiedAt: timestamptz(),
    /** When the TXT record of a verified domain was first missing. null: it was there at the last check. */
    proofMissingSince: timestamptz(),
    /** When the record is looked up again, if the domain is verified. */
    nextProofCheckAt: timestamptz().notNull().defaultNow(),
    boundTunnelId: uuid().references(() => tunnels.id),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    uniqueIndex("domains_domain_org_id_key").on(table.domain, table.orgId),
    uniqueIndex("domains_verified_key")
      .on(table.domain)
      .where(sql`${table.verifiedAt} is not null`),
    index("domains_org_id_idx").on(table.orgId, table.createdAt),
    index("domains_bound_tunnel_id_idx").on(table.boundTunnelId),
    index("domains_unverified_idx")
      .on(table.createdAt)
      .where(sql`${table.verifiedAt} is null`),
    index("domains_next_proof_check_at_idx")
      .on(table.nextProofCheckAt)
      .where(sql`${table.verifiedAt} is not null`),
    check("domains_domain", sql`${table.domain} ~ '^[a-z0-9-]+([.][a-z0-9-]+)+$'`),
    check(
      "domains_bound_when_verified",
      sql`${table.boundTunnelId} is null or ${table.verifiedAt} is not null`,
    ),
  ],
);

/** For listing and counting. `hostnames.held_by_org_id` keeps other organizations from claiming the name. */
export const reservedSubdomains = pgTable(
  "reserved_subdomains",
  {
    id: uuid().primaryKey().defaultRandom(),
    orgId: uuid()
      .notNull()
      .references(() => organizations.id, { onDelete: "cascade" }),
    subdomain: text().notNull(),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    uniqueIndex("reserved_subdomains_subdomain_key").on(table.subdomain),
    index("reserved_subdomains_org_id_idx").on(table.orgId, table.createdAt),
    check(
      "reserved_subdomains_subdomain",
      sql`${table.subdomain} ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'`,
    ),
  ],
);
