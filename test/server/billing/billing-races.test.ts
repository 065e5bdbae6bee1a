/** Events of the payment provider and requests of members that arrive during another change of the same subscription. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { SubscriptionStatus } from "../../../protocol/schemas/billing.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { waitUntil, type TestApi } from "../../harness/server/api.ts";
import {
  startBillingServer,
  type Customer,
  type BillingServer,
} from "../../harness/server/billing-server.ts";
import {
  createEvent,
  NOW,
  PRICES,
  buildSubscription,
  type PaymentProvider,
  type SubscriptionState,
} from "../../harness/fakes/payments.ts";

let billing: BillingServer;
let provider: PaymentProvider;
let api: TestApi;
beforeAll(async () => {
  billing = await startBillingServer();
  ({ api, provider } = billing);
});
afterAll(() => billing?.stop());
beforeEach(() => {
  provider.calls.splice(0);
  provider.beforeResponse = null;
});

function newSubscription({ id: customer }: Customer, status: SubscriptionStatus) {
  const state: SubscriptionState = { id: billing.newSubscriptionId(), customer, status };
  provider.subscriptions.set(state.id, buildSubscription(state));
  return state;
}

/** An event without the state of the subscription, which the service then requests. */
const createBareEvent = (type: string, { id }: SubscriptionState, seconds: number) =>
  createEvent(type, { object: "invoice", subscription: id }, NOW + seconds);

test("concurrent requests of owners get the same stored customer, and no transaction waits for the provider", async () => {
  const owner = await api.owner();
  const other = await api.colleague(owner, "owner");
  const email = owner.email;
  provider.beforeResponse = async ({ path, fields }) => {
    if (path !== "/v1/customers" || fields.email !== email) return;
    provider.beforeResponse = null;
    expect(await billing.checkout(other)).toMatchObject({ status: 200 });
  };
  expect(await billing.checkout(owner)).toMatchObject({ status: 200 });
  const calls = (path: string) => provider.calls.filter((call) => call.path === path);
  expect(calls("/v1/customers")).toHaveLength(2);
  const sessions = calls("/v1/checkout/sessions");
  expect(sessions).toHaveLength(2);
  expect(new Set(sessions.map(({ fields }) => fields.customer)).size).toBe(1);
});

describe("a response of the provider", () => {
  test("does not undo an event that arrived during the request", async () => {
    const customer = await billing.newCustomer();
    const state = newSubscription(customer, "incomplete");
    provider.beforeResponse = async () => {
      provider.beforeResponse = null;
      await billing.sendState({ ...state, status: "active" }, 0);
    };
    expect(await billing.sendEvent(createBareEvent("invoice.paid", state, -60))).toMatchObject({
      status: 200,
    });
    expect(await billing.getBilling(customer)).toMatchObject({ plan: "pro", status: "active" });
    expect(provider.calls.map(({ path }) => path)).toEqual(
      Array(2).fill(`/v1/subscriptions/${state.id}`),
    );
  });

  test("that is stale three times makes the provider send the event again", async () => {
    const customer = await billing.newCustomer();
    const state = newSubscription(customer, "active");
    let seconds = 0;
    provider.beforeResponse = () => billing.sendState(state, (seconds += 600));
    const event = createBareEvent("invoice.paid", state, -60);
    expect(await billing.sendEvent(event)).toMatchObject({
      status: 503,
      body: { error: "unavailable" },
    });
    expect(seconds).toBe(3 * 600);
    provider.beforeResponse = null;
    expect(await billing.sendEvent(event)).toMatchObject({ status: 200 });
    expect(await billing.getBilling(customer)).toMatchObject({ plan: "pro", status: "active" });
  });

  test("does not date a failed payment, only its own event does", async () => {
    const measureGracePeriod = async (type: string) => {
      const customer = await billing.newCustomer();
      await billing.sendEvent(
        createBareEvent(type, newSubscription(customer, "past_due"), -5 * 86_400),
      );
      return Date.parse((await billing.getBilling(customer)).graceEndsAt!) - Date.now();
    };
    const DAY_MS = 86_400_000;
    expect(await measureGracePeriod("invoice.paid")).toBeGreaterThan(6 * DAY_MS);
    expect(await measureGracePeriod("invoice.payment_failed")).toBeLessThan(3 * DAY_MS);
  });
});

test("a payment that fails after an earlier one was settled starts a new grace period", async () => {
  const customer = await billing.newCustomer();
  const state = await billing.buy(customer);
  await billing.sendState({ ...state, status: "past_due" }, -1800);
  await billing.sendState({ ...state, status: "active" }, -1200);
  await billing.sendState({ ...state, status: "past_due" }, -600);
  const { graceEndsAt } = await billing.getBilling(customer);
  expect(graceEndsAt).toBe(new Date((NOW - 600 + 7 * 86_400) * 1000).toISOString());
});

describe("an event without effect is applied when it is sent again", () => {
  test("once its customer is known", async () => {
    const customer = await billing.newCustomer();
    const moved = { owner: customer.owner, id: `${customer.id}_moved` };
    const state = newSubscription(moved, "active");
    const event = createEvent("customer.subscription.created", buildSubscription(state));
    expect(await billing.sendEvent(event)).toMatchObject({ status: 200 });
    expect(await billing.getPlan(customer)).toBe("free");
    await api.sql("update billing_customers set customer_id = $1 where org_id = $2", [
      moved.id,
      customer.owner.orgId,
    ]);
    expect(await billing.sendEvent(event)).toMatchObject({ status: 200 });
    expect(await billing.getPlan(customer)).toBe("pro");
  });

  test("once its price is known", async () => {
    const customer = await billing.newCustomer();
    const state = { ...newSubscription(customer, "active"), price: "price_unknown" };
    const event = createEvent("customer.subscription.created", buildSubscription(state));
    expect(await billing.sendEvent(event)).toMatchObject({ status: 200 });
    await waitUntil(() => Promise.resolve(api.server.output.includes("billing_unknown_price")));
    expect(await api.sql("select 1 from billing_events where id = $1", [event.id])).toEqual([]);
  });
});

/** Sends a request during a transaction that changes the plan, which commits once the request waits for it. */
async function requestWhilePlanBecomesFree<Result>(orgId: string, request: () => Promise<Result>) {
  await api.sql("begin");
  await api.sql("update organizations set plan = 'free' where id = $1", [orgId]);
  const result = request();
  await waitUntil(
    async () => (await api.sql("select 1 from pg_locks where not granted")).length > 0,
  );
  await api.sql("commit");
  return result;
}

test("a resource that is created while the plan changes has the terms of the new plan", async () => {
  const { owner } = await billing.newCustomer();
  const { orgId } = owner;
  const setPlanToPro = () =>
    api.sql("update organizations set plan = 'pro' where id = $1", [orgId]);
  await setPlanToPro();
  const created = await requestWhilePlanBecomesFree(orgId, () =>
    owner.post<Tunnel>("/tunnels", { localPort: 1 }),
  );
  const leftMs = Date.parse(created.body.expiresAt!) - Date.now();
  expect(leftMs).toBeLessThanOrEqual(3600_000);

  await setPlanToPro();
  const auth = { username: "ann", password: "open sesame" };
  const locked = await requestWhilePlanBecomesFree(orgId, () =>
    owner.put(`/tunnels/${created.body.id}/auth`, auth),
  );
  expect(locked).toMatchObject({ status: 402, body: { error: "upgrade_required" } });
  expect((await owner.get<Tunnel[]>("/tunnels")).body).toMatchObject([{ authEnabled: false }]);
});

test("a trial still includes the password after the sign-in that the plan lacks is removed", async () => {
  const customer = await billing.newCustomer();
  const { owner } = customer;
  const state = await billing.buy(customer);
  const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
  await owner.put(`/tunnels/${tunnel.id}/auth`, { username: "ann", password: "open sesame" });
  const gate = { allowed_emails: ["ann@example.com"], allowed_domains: [] };
  await api.sql("update tunnels set identity_gate = $1 where id = $2", [gate, tunnel.id]);
  await api.sql("update organizations set trial_ends_at = now() + interval '1 day' where id = $1", [
    owner.orgId,
  ]);
  await billing.sendState({ ...state, status: "canceled" }, 0, "deleted");
  const isClosed = async () => {
    const [row] = await api.sql<{ closed: boolean }>(
      "select is_beyond_plan closed from tunnels where id = $1",
      [tunnel.id],
    );
    return row!.closed;
  };
  expect(await isClosed()).toBe(true);
  await owner.delete(`/tunnels/${tunnel.id}/edge-auth`);
  expect(await isClosed()).toBe(false);
});

test("a payment for a deleted organization is logged once, so that it can be refunded", async () => {
  const customer = await billing.newCustomer();
  await customer.owner.delete(`/orgs/${customer.owner.orgId}`);
  const state = await billing.buy(customer, PRICES.team.monthly);
  await billing.sendState({ ...state, cancelAtPeriodEnd: true }, 0);
  const lines = () =>
    api.server.output.split("\n").filter((line) => line.includes("paid_for_deleted"));
  await waitUntil(() => Promise.resolve(lines().length > 0));
  expect(lines()).toEqual([expect.stringContaining(customer.owner.orgId)]);
});
