/** What the payment provider tells, read leniently: what we don't need may look as it likes. */
import { z } from "zod";
import type { BillingCycle, PaidPlan } from "../../../protocol/plans.ts";
import { SUBSCRIPTION_STATUSES } from "../../../protocol/schemas/billing.ts";
import type { SubscriptionSnapshot } from "../../store/billing/subscription-rules.ts";

/** Our plans by the provider's ids of their prices. */
export type PriceTable = { id: string; plan: PaidPlan; cycle: BillingCycle }[];

export type BillingEvent =
  | {
      kind: "subscription";
      id: string;
      type: string;
      at: Date;
      subscriptionId: string;
      /** null: the event only says that something is new of it. */
      snapshot: SubscriptionSnapshot | null;
    }
  /** Nothing that concerns us. */
  | { kind: "other"; type: string }
  /** It comes from the provider, and is not what it should be. */
  | { kind: "unreadable" };

/** An id, or the whole thing where it was asked to be expanded. */
const Reference = z.union([z.string(), z.object({ id: z.string() }).transform(({ id }) => id)]);
const Seconds = z.number().transform((seconds) => new Date(seconds * 1000));

const Subscription = z.object({
  id: z.string(),
  customer: Reference,
  status: z.enum(SUBSCRIPTION_STATUSES),
  cancel_at_period_end: z.boolean().nullish(),
  cancel_at: z.number().nullish(),
  /** Where the provider had it until 2025; since then it is each item's. */
  current_period_end: Seconds.nullish(),
  items: z.object({
    data: z.array(
      z.object({
        price: z.object({ id: z.string() }),
        current_period_end: Seconds.nullish(),
      }),
    ),
  }),
});

/** An invoice names its subscription in one of two places, as its version of the API has it. */
const SubscriptionReference = z.object({
  subscription: Reference.nullish(),
  parent: z
    .object({ subscription_details: z.object({ subscription: Reference.nullish() }).nullish() })
    .nullish(),
});

const Event = z.object({
  id: z.string(),
  type: z.string(),
  created: Seconds,
  data: z.object({ object: z.unknown() }),
});

const REFERRING_EVENTS = new Set([
  "checkout.session.completed",
  "checkout.session.async_payment_succeeded",
  "invoice.paid",
  "invoice.payment_failed",
]);

/** @throws z.ZodError for what is no subscription. */
export function parseSubscription(subscription: unknown, prices: PriceTable): SubscriptionSnapshot {
  const read = Subscription.parse(subscription);
  const { id, customer: customerId, status, items, cancel_at: endsAt } = read;
  const [item] = items.data.flatMap((one) => {
    const price = prices.find((price) => price.id === one.price.id);
    return price ? [{ ...one, bought: { plan: price.plan, cycle: price.cycle } }] : [];
  });
  const { current_period_end: periodEnd } = item ?? items.data[0] ?? {};
  return {
    id,
    customerId,
    status,
    purchase: item?.bought ?? null,
    periodEnd: periodEnd ?? read.current_period_end ?? null,
    cancelAtPeriodEnd: read.cancel_at_period_end === true || typeof endsAt === "number",
  };
}

/** @param body whose signature was found good. */
export function parseEvent(body: string, prices: PriceTable): BillingEvent {
  const event = Event.safeParse(JSON.parse(body));
  if (!event.success) return { kind: "unreadable" };
  const { id, type, created: at, data } = event.data;
  if (type.startsWith("customer.subscription.")) {
    const read = Subscription.safeParse(data.object);
    if (!read.success) return { kind: "unreadable" };
    const snapshot = parseSubscription(data.object, prices);
    return { kind: "subscription", id, type, at, subscriptionId: snapshot.id, snapshot };
  }
  const mention = REFERRING_EVENTS.has(type) ? SubscriptionReference.safeParse(data.object) : null;
  const subscriptionId =
    mention?.data?.subscription ?? mention?.data?.parent?.subscription_details?.subscription;
  return subscriptionId
    ? { kind: "subscription", id, type, at, subscriptionId, snapshot: null }
    : { kind: "other", type };
}
