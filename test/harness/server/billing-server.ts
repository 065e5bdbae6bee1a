/** A complete server that sells plans, its payment provider, and organizations that buy them. */
import type { Me } from "../../../protocol/schemas/accounts/accounts.ts";
import type { Billing, CheckoutSession } from "../../../protocol/schemas/billing.ts";
import { startApi, type Person, type Reply, type TestApi } from "./api.ts";
import {
  buildDelivery,
  createEvent,
  NOW,
  PRICES,
  startPaymentProvider,
  buildSubscription,
  type PaymentProvider,
  type SubscriptionState,
} from "../fakes/payments.ts";

/** An organization with a customer id at the provider. */
export interface Customer {
  owner: Person;
  id: string;
}

export interface BillingServer {
  api: TestApi;
  provider: PaymentProvider;
  checkout(owner: Person, body?: object): Promise<Reply<CheckoutSession>>;
  /** Creates a customer that has not paid yet. */
  newCustomer(): Promise<Customer>;
  newSubscriptionId(): string;
  sendEvent(event: object, options?: Parameters<typeof buildDelivery>[1]): Promise<Reply<object>>;
  /** Changes a subscription at the provider and sends its event. @param seconds the event's time, from now. */
  sendState(state: SubscriptionState, seconds: number, type?: string): Promise<void>;
  /** Buys a plan, with events of an hour ago. */
  buy(customer: Customer, price?: string): Promise<SubscriptionState>;
  getBilling(customer: Customer): Promise<Billing>;
  getPlan(customer: Customer): Promise<string>;
  listAudit(customer: Customer, action: string): Promise<object[]>;
  stop(): Promise<void>;
}

export async function startBillingServer(): Promise<BillingServer> {
  const api = await startApi({ kind: "payments" });
  const provider = await startPaymentProvider(api.fakePorts.paymentProvider);
  const newSubscriptionId = () => `sub_${crypto.randomUUID()}`;

  const checkout: BillingServer["checkout"] = (owner, body = { plan: "pro" }) =>
    owner.post<CheckoutSession>("/billing/checkout-session", body);
  const sendEvent: BillingServer["sendEvent"] = (event, options) =>
    api.anonymous.send("POST", "/billing/webhook", buildDelivery(event, options));

  async function newCustomer(): Promise<Customer> {
    const owner = await api.owner();
    await checkout(owner);
    const [row] = await api.sql<{ customer_id: string }>(
      "select customer_id from billing_customers where org_id = $1",
      [owner.orgId],
    );
    provider.calls.splice(0);
    return { owner, id: row!.customer_id };
  }

  async function sendState(state: SubscriptionState, seconds: number, type = "updated") {
    const object = buildSubscription(state);
    provider.subscriptions.set(state.id, object);
    const { status } = await sendEvent(
      createEvent(`customer.subscription.${type}`, object, NOW + seconds),
    );
    if (status !== 200) throw new Error(`an event was answered with ${status}`);
  }

  return {
    api,
    provider,
    checkout,
    newCustomer,
    newSubscriptionId,
    sendEvent,
    sendState,
    async buy({ id: customer }, price = PRICES.pro.monthly) {
      const id = newSubscriptionId();
      const state: SubscriptionState = { id, customer, status: "active", price };
      await sendState(state, -3600, "created");
      return state;
    },
    getBilling: async ({ owner }) => (await owner.get<Billing>("/billing")).body,
    getPlan: async ({ owner }) => (await owner.get<Me>("/auth/me")).body.entitlements.plan,
    async listAudit({ owner }, action) {
      const rows = await api.sql<{ metadata: object }>(
        "select metadata from audit_events where org_id = $1 and action = $2 order by created_at",
        [owner.orgId, action],
      );
      return rows.map(({ metadata }) => metadata);
    },
    async stop() {
      await provider[Symbol.asyncDispose]();
      await api.stop();
    },
  };
}
