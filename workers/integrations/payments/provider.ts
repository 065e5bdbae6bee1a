/**
 * The only module that talks to the payment provider: an interface of our own types around its library. It is loaded
 * when it is first needed. Calls go through the operator's network, since the operator configures the provider.
 */
import { Stripe } from "stripe";
import {
  BILLING_CYCLES,
  SELF_SERVICE_PLANS,
  type BillingCycle,
  type SelfServicePlan,
} from "../../../protocol/plans.ts";
import type { Config } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import { fetchConfiguredService } from "../../operator-network.ts";
import { parseJson } from "../../../shared/json.ts";
import type { SubscriptionSnapshot } from "../../store/billing/subscription-rules.ts";
import { parseEvent, parseSubscription, type BillingEvent, type PriceTable } from "./events.ts";

/** The time limit of one try of a call. */
const PAYMENTS_CALL_MAX_MS = 8_000;
const PAYMENTS_CALL_RETRIES = 2;
const PAYMENTS_ANSWER_MAX_BYTES = 1024 * 1024;
/** The maximum age of an event's signature. */
const PAYMENTS_SIGNATURE_MAX_SECONDS = 300;

export interface Purchase {
  plan: SelfServicePlan;
  cycle: BillingCycle;
}

/** Calls throw errors that `describePaymentError` formats for the log. */
export interface Payments {
  /** @param owner the caller. @param attempt the same attempt of the same owner returns the same customer. */
  createCustomer(
    orgId: string,
    owner: { userId: string; email: string },
    attempt: string,
  ): Promise<string>;
  /** @param attempt the same attempt returns the same checkout. */
  createCheckoutUrl(
    customer: { id: string; orgId: string },
    purchase: Purchase,
    attempt: string,
  ): Promise<string>;
  /** The customer portal, where owners manage cards, invoices and subscriptions. */
  createPortalUrl(customerId: string): Promise<string>;
  /** The portal's page that asks to confirm a change of the subscription. */
  createPlanChangeUrl(
    customerId: string,
    subscriptionId: string,
    purchase: Purchase,
  ): Promise<string>;
  /** @returns null when there is no such subscription. */
  findSubscription(id: string): Promise<SubscriptionSnapshot | null>;
  /** Cancels at once. Does nothing when the subscription has already ended. */
  cancelSubscription(id: string): Promise<void>;
  /** @returns null when the signature is invalid or too old. */
  verifyEvent(body: string, signature: string): Promise<BillingEvent | null>;
}

/** For `BILLING_MODE=payments`, which requires all of the settings. */
export function createPayments(env: Pick<Env, "OPERATOR_NETWORK">, config: Config): Payments {
  const { PAYMENTS_SECRET_KEY: key = "", PAYMENTS_WEBHOOK_SECRET: secret = "" } = config;
  const prices = buildPriceTable(config);
  const api = new Stripe(key, {
    ...toAddressOptions(config.PAYMENTS_API_URL),
    httpClient: Stripe.createFetchHttpClient(createOperatorFetch(env)),
    maxNetworkRetries: PAYMENTS_CALL_RETRIES,
    timeout: PAYMENTS_CALL_MAX_MS,
    telemetry: false,
    appInfo: { name: "Underpass" },
  });
  const billingPage = `${config.publicOrigin}/billing`;
  const getPriceId = ({ plan, cycle }: Purchase) =>
    prices.find((price) => price.plan === plan && price.cycle === cycle)?.id ?? "";

  return {
    async createCustomer(orgId, { userId, email }, attempt) {
      const customer = await api.customers.create(
        { email, metadata: { org_id: orgId } },
        { idempotencyKey: `customer-${orgId}-${userId}-${attempt}` },
      );
      return requireValue(customer.id);
    },
    async createCheckoutUrl({ id: customer, orgId }, purchase, attempt) {
      const session = await api.checkout.sessions.create(
        {
          mode: "subscription",
          customer,
          client_reference_id: orgId,
          line_items: [{ price: getPriceId(purchase), quantity: 1 }],
          subscription_data: { metadata: { org_id: orgId } },
          // The page waits there for the provider's event.
          success_url: `${billingPage}#paid`,
          cancel_url: billingPage,
        },
        { idempotencyKey: `checkout-${orgId}-${purchase.plan}-${purchase.cycle}-${attempt}` },
      );
      return requireValue(session.url);
    },
    async createPortalUrl(customer) {
      return requireValue(
        (await api.billingPortal.sessions.create({ customer, return_url: billingPage })).url,
      );
    },
    async createPlanChangeUrl(customer, subscriptionId, purchase) {
      const { items } = await api.subscriptions.retrieve(subscriptionId);
      const [item] = items.data;
      const portal = await api.billingPortal.sessions.create({
        customer,
        return_url: billingPage,
        flow_data: {
          type: "subscription_update_confirm",
          after_completion: { type: "redirect", redirect: { return_url: billingPage } },
          subscription_update_confirm: {
            subscription: subscriptionId,
            items: [{ id: item?.id ?? "", price: getPriceId(purchase), quantity: 1 }],
          },
        },
      });
      return requireValue(portal.url);
    },
    async findSubscription(id) {
      const found = await nullIfMissing(api.subscriptions.retrieve(id));
      return found && parseSubscription(found, prices);
    },
    async cancelSubscription(id) {
      const ended = await nullIfMissing(api.subscriptions.cancel(id));
      if (ended) requireValue(ended.id);
    },
    async verifyEvent(body, signature) {
      try {
        await Stripe.webhooks.constructEventAsync(
          body,
          signature,
          secret,
          PAYMENTS_SIGNATURE_MAX_SECONDS,
          Stripe.createSubtleCryptoProvider(),
        );
      } catch (error) {
        if (error instanceof Stripe.errors.StripeSignatureVerificationError) return null;
        return { kind: "unreadable" };
      }
      return parseEvent(body, prices);
    },
  };
}

/** For the log: without keys and personal data. */
export function describePaymentError(failure: unknown): string {
  if (!(failure instanceof Error)) return "not an error";
  if (!(failure instanceof Stripe.errors.StripeError)) return `${failure.name}: ${failure.message}`;
  const { type, code = "no code", statusCode = "no answer", requestId = "no request id" } = failure;
  return `${type} (${code}), status ${statusCode}, ${requestId}`;
}

/** The library takes any JSON for the expected answer, with fields missing. */
function requireValue(value: string | null | undefined): string {
  if (!value) throw new Error("the payment provider's answer is incomplete");
  return value;
}

async function nullIfMissing<Value>(asked: Promise<Value>): Promise<Value | null> {
  try {
    return await asked;
  } catch (error) {
    // The status alone can mean that the URL is wrong.
    const isMissing =
      error instanceof Stripe.errors.StripeError && error.code === "resource_missing";
    if (isMissing) return null;
    throw error;
  }
}

function buildPriceTable(config: Config): PriceTable {
  return SELF_SERVICE_PLANS.flatMap((plan) =>
    BILLING_CYCLES.map((cycle) => {
      const name = `PAYMENTS_PRICE_${upper(plan)}_${upper(cycle)}` as const;
      return { plan, cycle, id: config[name] ?? "" };
    }),
  );
}

function upper<Word extends string>(word: Word): Uppercase<Word> {
  return word.toUpperCase() as Uppercase<Word>;
}

function toAddressOptions(url: string | undefined) {
  if (url === undefined) return {};
  const { hostname: host, port, protocol } = new URL(url);
  const isSecure = protocol === "https:";
  return {
    host,
    port: port || (isSecure ? 443 : 80),
    protocol: isSecure ? "https" : "http",
  } as const;
}

function createOperatorFetch(env: Pick<Env, "OPERATOR_NETWORK">): typeof fetch {
  const bounds = { maxMs: PAYMENTS_CALL_MAX_MS, maxBytes: PAYMENTS_ANSWER_MAX_BYTES };
  return (async (url: string, init: RequestInit) =>
    withErrorBody(await fetchConfiguredService(env, url, init, bounds))) as typeof fetch;
}

/**
 * A proxy or a wrong URL answers with an error that is not the provider's. The library takes it for a success if its body
 * is JSON, and forgets its status otherwise.
 */
async function withErrorBody(response: Response): Promise<Response> {
  if (response.ok) return response;
  const body = await response.text();
  const { error } = Object(parseJson(body)) as { error?: unknown };
  return new Response(error ? body : '{"error":{"type":"api_error"}}', response);
}
