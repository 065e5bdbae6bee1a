/** The subscriptions of organizations, as the payment provider reported them. */
import { sql } from "drizzle-orm";
import {
  boolean,
  check,
  index,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from "drizzle-orm/pg-core";
import { isIn } from "./checks.ts";
import { timestamptz } from "./columns.ts";
import { BILLING_CYCLES, SELF_SERVICE_PLANS } from "../../../protocol/plans.ts";
import { SUBSCRIPTION_STATUSES } from "../../../protocol/schemas/billing.ts";
import { organizations } from "./organizations.ts";

/** `mock`: simulated billing, without a payment provider. */
const SOURCES = ["payments", "mock"] as const;
const source = () => text({ enum: SOURCES }).notNull();

/** An organization's customer at the payment provider. Changes of its subscription are serialized by a lock of this row. */
export const billingCustomers = pgTable(
  "billing_customers",
  {
    orgId: uuid()
      .notNull()
      .references(() => organizations.id, { onDelete: "cascade" }),
    source: source(),
    /** Every row has it. The first version inserted the row without it, and set it in the same transaction. */
    customerId: text(),
  },
  (table) => [
    primaryKey({ columns: [table.orgId, table.source] }),
    uniqueIndex("billing_customers_customer_id_key").on(table.customerId),
    check("billing_customers_source", isIn(table.source, SOURCES)),
  ],
);

export const subscriptions = pgTable(
  "subscriptions",
  {
    /** The provider's id of the subscription. */
    id: text().primaryKey(),
    orgId: uuid()
      .notNull()
      .references(() => organizations.id, { onDelete: "cascade" }),
    source: source(),
    status: text({ enum: SUBSCRIPTION_STATUSES }).notNull(),
    plan: text({ enum: SELF_SERVICE_PLANS }).notNull(),
    cycle: text({ enum: BILLING_CYCLES }).notNull(),
    periodEnd: timestamptz(),
    cancelAtPeriodEnd: boolean().notNull(),
    /** The time of the newest event that was applied: by the provider's clock, to the second. */
    eventAt: timestamptz().notNull(),
    /** When the subscription was last fetched from the provider, by the clock of this server. */
    askedAt: timestamptz(),
    overdueSince: timestamptz(),
    overduePeriodEnd: timestamptz(),
    /** As of the last check: the scheduled job checks subscriptions in a grace period again. */
    isEntitling: boolean().notNull(),
    createdAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [
    index("subscriptions_org_id_idx").on(table.orgId),
    index("subscriptions_overdue_idx")
      .on(table.overdueSince)
      .where(sql`${table.isEntitling} and ${table.status} = 'past_due'`),
    check("subscriptions_source", isIn(table.source, SOURCES)),
    check("subscriptions_plan", isIn(table.plan, SELF_SERVICE_PLANS)),
    check("subscriptions_cycle", isIn(table.cycle, BILLING_CYCLES)),
    check("subscriptions_status", isIn(table.status, SUBSCRIPTION_STATUSES)),
  ],
);

/** Events that were applied, so that each is applied once: the provider delivers an event at least once. */
export const billingEvents = pgTable(
  "billing_events",
  {
    id: text().primaryKey(),
    type: text().notNull(),
    receivedAt: timestamptz().notNull().defaultNow(),
  },
  (table) => [index("billing_events_received_at_idx").on(table.receivedAt)],
);
