/**
 * Fakes the part of the payment provider's API that the service uses. A repeated idempotency key gets the same
 * response, and events are signed by the provider's own library.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Stripe } from "stripe";
import type { SubscriptionStatus } from "../../../protocol/schemas/billing.ts";
import { buildLocalOrigin, startHttpServer } from "./http-server.ts";

export const PRICES = {
  pro: { monthly: "price_pro_monthly", yearly: "price_pro_yearly" },
  team: { monthly: "price_team_monthly", yearly: "price_team_yearly" },
};
/** In seconds, as in the provider's events. */
export const NOW = Math.floor(Date.now() / 1000);
const WEBHOOK_SECRET = "whsec_test";

interface Call {
  method: string;
  path: string;
  /** Form fields by name. */
  fields: Record<string, string>;
  idempotencyKey: string | undefined;
  authorization: string | undefined;
}

export interface SubscriptionState {
  id: string;
  customer: string;
  status: SubscriptionStatus;
  price?: string;
  /** In seconds. */
  periodEnd?: number;
  cancelAtPeriodEnd?: boolean;
}

export interface PaymentProvider extends AsyncDisposable {
  /** Settings for a server that uses this provider. */
  settings: Record<string, string>;
  /** Except those about subscriptions that it does not know. */
  calls: Call[];
  /** The subscriptions that the API returns, by id. */
  subscriptions: Map<string, object>;
  /** While set, every call is answered with this status. */
  outage: number | null;
  /** Awaited after the response was determined and before it is sent. */
  beforeResponse: ((call: Call) => Promise<void>) | null;
}

/** Settings for a server that uses a provider on this port. */
export function buildPaymentSettings(port: number) {
  return {
    BILLING_MODE: "payments",
    PAYMENTS_API_URL: buildLocalOrigin(port),
    PAYMENTS_SECRET_KEY: "sk_test",
    PAYMENTS_WEBHOOK_SECRET: WEBHOOK_SECRET,
    PAYMENTS_PRICE_PRO_MONTHLY: PRICES.pro.monthly,
    PAYMENTS_PRICE_PRO_YEARLY: PRICES.pro.yearly,
    PAYMENTS_PRICE_TEAM_MONTHLY: PRICES.team.monthly,
    PAYMENTS_PRICE_TEAM_YEARLY: PRICES.team.yearly,
  };
}

/** @param port 0: any free one. */
export async function startPaymentProvider(port = 0): Promise<PaymentProvider> {
  const calls: Call[] = [];
  const subscriptions = new Map<string, object>();
  const answered = new Map<string, object>();
  const newId = (prefix: string) => `${prefix}_${crypto.randomUUID()}`;

  function handleCall({ method, path, fields }: Call): [number, object] {
    const [, version, ...parts] = path.split("/");
    const route = `${method} ${version} ${parts.join(" ")}`;
    if (route === "POST v1 customers") return [200, { id: newId("cus"), object: "customer" }];
    if (route === "POST v1 checkout sessions") {
      const id = newId("cs");
      return [200, { id, object: "checkout.session", url: `https://pay.example/${id}` }];
    }
    if (route === "POST v1 billing_portal sessions") {
      const flow = fields["flow_data[type]"] ?? "home";
      const url = `https://pay.example/portal/${fields.customer}/${flow}`;
      return [200, { id: newId("bps"), object: "billing_portal.session", url }];
    }
    const [kind, id = ""] = parts;
    const known = kind === "subscriptions" ? subscriptions.get(id) : undefined;
    if (!known) {
      const error = { type: "invalid_request_error", code: "resource_missing", message: "none" };
      return [404, { error }];
    }
    if (method === "DELETE") subscriptions.set(id, { ...known, status: "canceled" });
    return [200, subscriptions.get(id)!];
  }

  /** Servers of several test files share the outbox, and any of them may cancel a subscription of another file's provider. */
  function isOfAnother(path: string): boolean {
    const [, , kind, id = ""] = path.split("/");
    return kind === "subscriptions" && !subscriptions.has(id);
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk as string;
    const { method = "", url: path = "", headers } = request;
    const idempotencyKey = headers["idempotency-key"] as string | undefined;
    const { authorization } = headers;
    const fields = Object.fromEntries(new URLSearchParams(body));
    const call = { method, path, fields, idempotencyKey, authorization };
    if (!isOfAnother(path)) calls.push(call);
    if (provider.outage !== null) {
      response.writeHead(provider.outage, { "stripe-should-retry": "false" });
      response.end("{}");
      return;
    }
    const earlier = idempotencyKey === undefined ? undefined : answered.get(idempotencyKey);
    const [status, answer] = earlier ? [200, earlier] : handleCall(call);
    if (idempotencyKey !== undefined) answered.set(idempotencyKey, answer);
    await provider.beforeResponse?.(call);
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(answer));
  }

  const server = await startHttpServer((request, response) => void handle(request, response), port);
  const provider: PaymentProvider = {
    calls,
    subscriptions,
    outage: null,
    beforeResponse: null,
    settings: buildPaymentSettings(server.port),
    [Symbol.asyncDispose]: () => server.stop(),
  };
  return provider;
}

/** A subscription in the provider's format. */
export function buildSubscription({
  id,
  customer,
  status,
  price = PRICES.pro.monthly,
  periodEnd = 4_000_000_000,
  cancelAtPeriodEnd = false,
}: SubscriptionState) {
  const item = { id: `si_${id}`, price: { id: price }, current_period_end: periodEnd };
  return {
    id,
    object: "subscription",
    customer,
    status,
    cancel_at_period_end: cancelAtPeriodEnd,
    items: { object: "list", data: [item] },
  };
}

let events = 0;

/** @param at in seconds. */
export function createEvent(type: string, object: object, at = Math.floor(Date.now() / 1000)) {
  events += 1;
  return {
    id: `evt_${events}_${crypto.randomUUID()}`,
    object: "event",
    type,
    created: at,
    data: { object },
  };
}

/** The webhook request of the provider. @param signedAt in seconds. */
export function buildDelivery(
  event: object,
  { secret = WEBHOOK_SECRET, signedAt = Math.floor(Date.now() / 1000) } = {},
): RequestInit {
  const payload = JSON.stringify(event);
  const signature = Stripe.webhooks.generateTestHeaderString({
    payload,
    secret,
    timestamp: signedAt,
  });
  return {
    method: "POST",
    body: payload,
    headers: { "content-type": "application/json", "stripe-signature": signature },
  };
}
