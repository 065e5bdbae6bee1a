/** The payment provider's events, parsed leniently: fields that we don't need are not checked. */
import { z } from "zod";
import type { BillingCycle, SelfServicePlan } from "../../../protocol/plans.ts";
import { SUBSCRIPTION_STATUSES } from "../../../protocol/schemas/billing.ts";
import type { SubscriptionSnapshot } from "../../store/billing/subscription-rules.ts";

/** The provider's price ids, with our plans. */
export type PriceTable = { id: string; plan: SelfServicePlan; cycle: BillingCycle }[];

export type BillingEvent =
  | {
      kind: "subscription";
      id: string;
      type: string;
      at: Date;
      subscriptionId: string;
      /** null: the event only says that the subscription has changed. */
      snapshot: SubscriptionSnapshot | null;
    }
  /** An event that does not concern us. */
  | { kind: "other"; type: string }
  /** The event is the provider's, but has an unexpected format. */
  | { kind: "unreadable" };

/** An id, or the whole object where it is expanded. */
const Reference = z.union([z.string(), z.object({ id: z.string() }).transform(({ id }) => id)]);
const Seconds = z.number().transform((seconds) => new Date(seconds * 1000));

const Subscription = z.object({
  id: z.string(),
  customer: Reference,
  status: z.enum(SUBSCRIPTION_STATUSES),
  cancel_at_period_end: z.boolean().nullish(),
  cancel_at: z.number().nullish(),
  /** Until 2025 the period was here; since then it is in each item. */
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

/** An invoice names its subscription in one of two places, depending on the API version. */
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

/** Events that name a subscription without containing it. */
const REFERRING_EVENTS = new Set([
  "checkout.session.completed",
  "checkout.session.async_payment_succeeded",
  "invoice.paid",
  "invoice.payment_failed",
]);

/** @throws z.ZodError when it is not a subscription. */
export function parseSubscription(subscription: unknown, prices: PriceTable): SubscriptionSnapshot {
  const parsed = Subscription.parse(subscription);
  const { id, customer: customerId, status, items, cancel_at: cancelAt } = parsed;
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
    periodEnd: periodEnd ?? parsed.current_period_end ?? null,
    cancelAtPeriodEnd: parsed.cancel_at_period_end === true || typeof cancelAt === "number",
  };
}

/** @param body of an event whose signature has been verified. */
export function parseEvent(body: string, prices: PriceTable): BillingEvent {
  const event = Event.safeParse(JSON.parse(body));
  if (!event.success) return { kind: "unreadable" };
  const { id, type, created: at, data } = event.data;
  if (type.startsWith("customer.subscription.")) {
    const { success } = Subscription.safeParse(data.object);
    if (!success) return { kind: "unreadable" };
    const snapshot = parseSubscription(data.object, prices);
    return { kind: "subscription", id, type, at, subscriptionId: snapshot.id, snapshot };
  }
  const reference = REFERRING_EVENTS.has(type)
    ? SubscriptionReference.safeParse(data.object)
    : null;
  const subscriptionId =
    reference?.data?.subscription ?? reference?.data?.parent?.subscription_details?.subscription;
  return subscriptionId
    ? { kind: "subscription", id, type, at, subscriptionId, snapshot: null }
    : { kind: "other", type };
}
