/** Checkouts with a fake payment provider. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Person, type TestApi } from "../../harness/server/api.ts";
import { startBillingServer, type BillingServer } from "../../harness/server/billing-server.ts";
import { PRICES, type PaymentProvider } from "../../harness/fakes/payments.ts";

let billing: BillingServer;
let provider: PaymentProvider;
let api: TestApi;
beforeAll(async () => {
  billing = await startBillingServer();
  ({ api, provider } = billing);
});
afterAll(() => billing?.stop());
beforeEach(() => void provider.calls.splice(0));
const checkout = (owner: Person, body?: object) => billing.checkout(owner, body);

describe("a checkout", () => {
  test("returns a URL of the provider, for the organization and the price of the plan", async () => {
    const owner = await api.owner();
    const body = { plan: "team", billing_cycle: "yearly" };
    const reply = await checkout(owner, body);
    expect(reply).toMatchObject({
      status: 200,
      body: { checkout_url: expect.stringMatching(/^https:\/\/pay\.example\/cs_/) },
    });
    const [create, session] = provider.calls;
    expect(create).toMatchObject({
      path: "/v1/customers",
      authorization: "Bearer sk_test",
      fields: { email: owner.email, "metadata[org_id]": owner.orgId },
      idempotencyKey: expect.stringContaining(owner.orgId),
    });
    expect(session).toMatchObject({
      path: "/v1/checkout/sessions",
      fields: {
        mode: "subscription",
        customer: expect.stringMatching(/^cus_/),
        client_reference_id: owner.orgId,
        "line_items[0][price]": PRICES.team.yearly,
        success_url: expect.stringMatching(/^http:\/\/localhost:\d+\/billing#paid$/),
      },
    });
    expect(await billing.getPlan({ owner, id: "" })).toBe("free");
  });

  test("requested twenty times at once creates one customer", async () => {
    const owner = await api.owner();
    const replies = await Promise.all(Array.from({ length: 20 }, () => checkout(owner)));
    expect(replies.map(({ status }) => status)).toEqual(Array(20).fill(200));
    const customers = provider.calls.filter(({ path }) => path.includes("checkout"));
    expect(new Set(customers.map(({ fields }) => fields.customer)).size).toBe(1);
  });

  test.each([
    ["no plan", {}],
    ["a plan that is not for sale", { plan: "enterprise" }],
    ["another cycle", { plan: "pro", billing_cycle: "weekly" }],
  ])("of %s is refused", async (_what, body) => {
    expect(await checkout(await api.owner(), body)).toMatchObject({
      status: 400,
      body: { error: "invalid_request" },
    });
  });

  test("of a paying organization returns the URL where the plan is changed", async () => {
    const customer = await billing.newCustomer();
    const { id } = await billing.buy(customer);
    const change = await checkout(customer.owner, { plan: "team" });
    expect(change.body.checkout_url).toContain(`${customer.id}/subscription_update_confirm`);
    expect(provider.calls.at(-1)!.fields).toMatchObject({
      "flow_data[subscription_update_confirm][subscription]": id,
      "flow_data[subscription_update_confirm][items][0][id]": `si_${id}`,
      "flow_data[subscription_update_confirm][items][0][price]": PRICES.team.monthly,
    });
    const same = await checkout(customer.owner, { plan: "pro" });
    expect(same.body.checkout_url).toContain(`${customer.id}/home`);
    expect(provider.calls.map(({ path }) => path)).not.toContain("/v1/checkout/sessions");
  });

  test("and the portal are for owners only", async () => {
    const owner = await api.owner();
    const admin = await api.colleague(owner, "admin");
    for (const [method, path] of [
      ["POST", "/billing/checkout-session"],
      ["POST", "/billing/portal"],
      ["POST", "/billing/cancel"],
      ["GET", "/billing"],
    ] as const) {
      const init = { headers: { "content-type": "application/json" }, body: '{"plan":"pro"}' };
      const reply = await admin.send(method, path, method === "GET" ? {} : init);
      expect([path, reply.status]).toEqual([path, 403]);
    }
    expect(provider.calls).toEqual([]);
  });

  test("reports that the provider is unreachable, and can be requested again", async () => {
    const owner = await api.owner();
    provider.outage = 503;
    const reply = await checkout(owner);
    const { status } = await owner.post("/billing/portal");
    provider.outage = null;
    expect([status, reply]).toMatchObject([503, { status: 503, body: { error: "unavailable" } }]);
    expect(await checkout(owner)).toMatchObject({ status: 200 });
    expect(api.server.output).not.toContain("sk_test");
  });
});
