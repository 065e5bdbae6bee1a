/** Subscriptions with a fake payment provider: its portal and its events. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { PortalSession, SubscriptionStatus } from "../../../protocol/schemas/billing.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { createReceiver } from "../../harness/fakes/vendor.ts";
import { waitUntil, type Person, type TestApi } from "../../harness/server/api.ts";
import { startBillingServer, type BillingServer } from "../../harness/server/billing-server.ts";
import {
  buildDelivery,
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
beforeEach(() => void provider.calls.splice(0));

test("the portal is that of the provider, where the subscription is canceled", async () => {
  const { owner, id } = await billing.newCustomer();
  const { status, body } = await owner.post<PortalSession>("/billing/portal");
  expect([status, body.portal_url]).toEqual([200, `https://pay.example/portal/${id}/home`]);
  const refused = await owner.post("/billing/cancel");
  expect(refused).toMatchObject({ status: 405, body: { error: "method_not_allowed" } });
  // The path supports no method.
  expect(refused.headers.get("allow")).toBe(",");
  expect(await owner.get("/billing/mock/portal?token=x")).toMatchObject({ status: 404 });
});

describe("an event", () => {
  test("that is not signed by the provider, or not recently, is refused without any change", async () => {
    const customer = await billing.newCustomer();
    const object = buildSubscription({ id: "sub_x", customer: customer.id, status: "active" });
    const event = createEvent("customer.subscription.created", object);
    const valid = buildDelivery(event);
    const json = { "content-type": "application/json" };
    const attempts: RequestInit[] = [
      buildDelivery(event, { secret: "whsec_other" }),
      buildDelivery(event, { signedAt: NOW - 600 }),
      { ...valid, headers: json },
      { ...valid, headers: { ...json, "stripe-signature": "t=1,v1=" } },
      { ...valid, headers: { ...json, "stripe-signature": "v1=00" } },
      { ...valid, body: `${valid.body as string} ` },
      { ...valid, body: "" },
    ];
    for (const attempt of attempts) {
      const reply = await api.anonymous.send("POST", "/billing/webhook", attempt);
      expect(reply).toMatchObject({ status: 401, body: { error: "unauthorized" } });
    }
    expect(await billing.getPlan(customer)).toBe("free");
    expect(await api.sql("select from subscriptions where id = 'sub_x'")).toEqual([]);
  });

  test("that is too large is refused before it is parsed", async () => {
    const reply = await billing.sendEvent(
      createEvent("other", { padding: "x".repeat(1024 * 1024) }),
    );
    expect(reply).toMatchObject({ status: 413, body: { error: "payload_too_large" } });
  });

  test("of a purchase changes the plan at once", async () => {
    const customer = await billing.newCustomer();
    await billing.buy(customer, PRICES.team.yearly);
    expect(await billing.getPlan(customer)).toBe("team");
    expect(await billing.getBilling(customer)).toMatchObject({
      mode: "payments",
      plan: "team",
      status: "active",
      cycle: "yearly",
      currentPeriodEnd: new Date(4e12).toISOString(),
      graceEndsAt: null,
      cancelAtPeriodEnd: false,
      overLimits: [],
      prices: { pro: { monthly: 10, yearly: 100 }, team: { monthly: 40, yearly: 400 } },
    });
    expect(await billing.listAudit(customer, "plan_changed")).toEqual([
      { from: "free", to: "team", reason: "paid" },
    ]);
  });

  test("that arrives twenty times at once is applied once", async () => {
    const customer = await billing.newCustomer();
    const object = buildSubscription({
      id: billing.newSubscriptionId(),
      customer: customer.id,
      status: "active",
    });
    const event = createEvent("customer.subscription.created", object);
    const replies = await Promise.all(Array.from({ length: 20 }, () => billing.sendEvent(event)));
    expect(replies.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(await billing.listAudit(customer, "subscription_changed")).toHaveLength(1);
    expect(await billing.listAudit(customer, "plan_changed")).toHaveLength(1);
  });

  test("that is older than the stored state changes nothing", async () => {
    const customer = await billing.newCustomer();
    const state = await billing.buy(customer);
    await billing.sendState({ ...state, price: PRICES.team.monthly }, 0);
    const older = buildSubscription({ ...state, status: "unpaid" });
    await billing.sendEvent(createEvent("customer.subscription.updated", older, NOW - 1800));
    expect(await billing.getBilling(customer)).toMatchObject({ plan: "team", status: "active" });
  });

  test("of the same second as another one causes a query of the provider", async () => {
    const customer = await billing.newCustomer();
    const state: SubscriptionState = {
      id: billing.newSubscriptionId(),
      customer: customer.id,
      status: "active",
    };
    await billing.sendState(state, 0, "created");
    const stale = buildSubscription({ ...state, status: "incomplete" });
    await billing.sendEvent(createEvent("customer.subscription.updated", stale, NOW));
    expect(await billing.getBilling(customer)).toMatchObject({ plan: "pro", status: "active" });
    expect(provider.calls.map(({ path }) => path)).toEqual([`/v1/subscriptions/${state.id}`]);
  });

  test("without a snapshot causes a query of the provider", async () => {
    const customer = await billing.newCustomer();
    const state: SubscriptionState = {
      id: billing.newSubscriptionId(),
      customer: customer.id,
      status: "active",
    };
    provider.subscriptions.set(state.id, buildSubscription(state));
    const session = { object: "checkout.session", customer: customer.id, subscription: state.id };
    await billing.sendEvent(createEvent("checkout.session.completed", session, NOW - 60));
    expect(await billing.getPlan(customer)).toBe("pro");
    provider.subscriptions.set(state.id, buildSubscription({ ...state, status: "past_due" }));
    const details = { subscription_details: { subscription: state.id } };
    await billing.sendEvent(
      createEvent("invoice.payment_failed", { object: "invoice", parent: details }, NOW - 50),
    );
    expect(await billing.getBilling(customer)).toMatchObject({ plan: "pro", status: "past_due" });
  });

  test.each([500, 404])(
    "that is inconclusive while the provider answers with %i is answered with 503, and applied when it is sent again",
    async (outage) => {
      const customer = await billing.newCustomer();
      const state: SubscriptionState = {
        id: billing.newSubscriptionId(),
        customer: customer.id,
        status: "active",
      };
      provider.subscriptions.set(state.id, buildSubscription(state));
      const session = { object: "checkout.session", subscription: state.id };
      const event = createEvent("checkout.session.completed", session);
      provider.outage = outage;
      expect(await billing.sendEvent(event)).toMatchObject({
        status: 503,
        body: { error: "unavailable" },
      });
      provider.outage = null;
      const cause = new RegExp(`"payments_failed".*status ${outage}`);
      await waitUntil(() => Promise.resolve(cause.test(api.server.output)));
      expect(await billing.sendEvent(event)).toMatchObject({ status: 200 });
      expect(await billing.getPlan(customer)).toBe("pro");
    },
  );

  test("of an unknown customer or subscription, and one of another kind, is answered with 200 and logged", async () => {
    const unknownSubscription = buildSubscription({
      id: "sub_z",
      customer: "cus_z",
      status: "active",
    });
    const events = [
      createEvent("customer.subscription.created", unknownSubscription),
      createEvent("invoice.paid", { object: "invoice", subscription: "sub_nowhere" }),
      createEvent("customer.subscription.updated", { id: 7 }),
      createEvent("charge.succeeded", { object: "charge" }),
    ];
    for (const event of events)
      expect(await billing.sendEvent(event)).toMatchObject({ status: 200 });
    for (const line of [
      "billing_unknown_customer",
      "billing_unknown_subscription",
      "billing_event_unreadable",
    ])
      await waitUntil(() => Promise.resolve(api.server.output.includes(line)));
  });
});

/** Another organization with what a lower plan would change or report. */
async function createBystander(): Promise<Person> {
  const customer = await billing.newCustomer();
  await billing.buy(customer);
  const { owner } = customer;
  const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
  const password = { username: "eve", password: "open sesame" };
  expect((await owner.put(`/tunnels/${tunnel.id}/auth`, password)).status).toBe(200);
  await createReceiver(owner);
  return owner;
}

const readBystander = ({ orgId }: Person) =>
  api.sql(
    `select organizations.plan, tunnels.expires_at, tunnels.is_beyond_plan, tunnels.settings_version,
       webhook_receivers.version
     from organizations join tunnels on tunnels.org_id = organizations.id
       join webhook_receivers on webhook_receivers.org_id = organizations.id
     where organizations.id = $1`,
    [orgId],
  );

describe("a subscription that is", () => {
  test("overdue retains its plan for seven days, shows this, and loses it without a payment", async () => {
    const customer = await billing.newCustomer();
    const state = await billing.buy(customer);
    const bystander = await createBystander();
    const untouched = await readBystander(bystander);
    await billing.sendState({ ...state, status: "past_due" }, 0);
    const { plan, graceEndsAt } = await billing.getBilling(customer);
    expect([plan, graceEndsAt]).toEqual(["pro", new Date((NOW + 7 * 86_400) * 1000).toISOString()]);
    await waitUntil(async () =>
      (await api.readMailsTo(customer.owner.email)).some((mail) =>
        mail.includes("did not go through"),
      ),
    );

    await api.runCron();
    expect(await billing.getPlan(customer)).toBe("pro");
    await api.sql(
      "update subscriptions set overdue_since = now() - interval '7 days' where id = $1",
      [state.id],
    );
    await api.runCron();
    expect(await billing.getPlan(customer)).toBe("free");
    expect((await billing.listAudit(customer, "plan_changed")).at(-1)).toEqual({
      from: "pro",
      to: "free",
      reason: "payment_overdue",
    });
    await waitUntil(async () =>
      (await api.readMailsTo(customer.owner.email)).some((mail) =>
        mail.includes("plan is now free"),
      ),
    );
    expect(await readBystander(bystander)).toEqual(untouched);

    await billing.sendState({ ...state, status: "active" }, 60);
    expect(await billing.getBilling(customer)).toMatchObject({ plan: "pro", graceEndsAt: null });
  });

  test.each<[SubscriptionStatus, string]>([
    ["trialing", "pro"],
    ["active", "pro"],
    ["unpaid", "free"],
    ["paused", "free"],
    ["canceled", "free"],
  ])("%s has the plan %s at once", async (status, plan) => {
    const customer = await billing.newCustomer();
    const state = await billing.buy(customer);
    await billing.sendState({ ...state, status }, 0, status === "canceled" ? "deleted" : "updated");
    expect([await billing.getPlan(customer), (await billing.getBilling(customer)).status]).toEqual([
      plan,
      status,
    ]);
  });

  test("to end with its period is unchanged until the end", async () => {
    const customer = await billing.newCustomer();
    const state = await billing.buy(customer);
    await billing.sendState({ ...state, cancelAtPeriodEnd: true }, 0);
    expect(await billing.getBilling(customer)).toMatchObject({
      plan: "pro",
      cancelAtPeriodEnd: true,
    });
    await billing.sendState({ ...state, status: "canceled" }, 60, "deleted");
    await billing.sendState({ ...state, status: "active" }, 90);
    expect(await billing.getPlan(customer)).toBe("free");
  });

  test("of a price that was removed from the settings remains on the purchased plan", async () => {
    const customer = await billing.newCustomer();
    const state = await billing.buy(customer, PRICES.team.monthly);
    await billing.sendState({ ...state, price: "price_of_last_year" }, 0);
    expect(await billing.getBilling(customer)).toMatchObject({ plan: "team", cycle: "monthly" });
  });
});

test("three events in each of their six orders leave the same plan", async () => {
  const orders = ["012", "021", "102", "120", "201", "210"];
  for (const order of orders) {
    const customer = await billing.newCustomer();
    const state = { id: billing.newSubscriptionId(), customer: customer.id };
    const [bought, failed, upgraded] = [
      buildSubscription({ ...state, status: "active" }),
      buildSubscription({ ...state, status: "past_due" }),
      buildSubscription({ ...state, status: "active", price: PRICES.team.yearly }),
    ];
    const events = [
      createEvent("customer.subscription.created", bought, NOW - 300),
      createEvent("customer.subscription.updated", failed, NOW - 200),
      createEvent("customer.subscription.updated", upgraded, NOW - 100),
    ];
    for (const which of order) await billing.sendEvent(events[Number(which)]!);
    const { plan, status, cycle } = await billing.getBilling(customer);
    expect([order, plan, status, cycle]).toEqual([order, "team", "active", "yearly"]);
  }
});

test("of two subscriptions the better one counts, and the log warns", async () => {
  const customer = await billing.newCustomer();
  const team = await billing.buy(customer, PRICES.team.monthly);
  await billing.buy(customer, PRICES.pro.monthly);
  expect(await billing.getPlan(customer)).toBe("team");
  await waitUntil(() => Promise.resolve(api.server.output.includes("paid_twice")));
  await billing.sendState({ ...team, status: "canceled" }, 0, "deleted");
  expect(await billing.getPlan(customer)).toBe("pro");
});

test("a plan that the operator assigned remains while no subscription changes", async () => {
  const customer = await billing.newCustomer();
  await api.sql("update organizations set plan = 'enterprise' where id = $1", [
    customer.owner.orgId,
  ]);
  const state: SubscriptionState = {
    id: billing.newSubscriptionId(),
    customer: customer.id,
    status: "incomplete",
  };
  await billing.sendState(state, 0, "created");
  await billing.sendState({ ...state, status: "incomplete_expired" }, 60);
  expect(await billing.getPlan(customer)).toBe("enterprise");
});

test("a subscription of a deleted organization is canceled, before or after its payment", async () => {
  const [paid, late] = [await billing.newCustomer(), await billing.newCustomer()];
  const { id } = await billing.buy(paid);
  await paid.owner.delete(`/orgs/${paid.owner.orgId}`);
  await late.owner.delete(`/orgs/${late.owner.orgId}`);
  const { id: lateId } = await billing.buy(late);
  for (const ended of [id, lateId]) {
    await waitUntil(() =>
      Promise.resolve(
        provider.calls.some(
          ({ method, path }) => method === "DELETE" && path === `/v1/subscriptions/${ended}`,
        ),
      ),
    );
  }
});
