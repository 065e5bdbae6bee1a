/** Permissions that depend on the plan only on the hosted service. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createCaller, newAddress, newEmail, PASSWORD } from "../../harness/server/api.ts";
import type { Billing, CheckoutSession } from "../../../protocol/schemas/billing.ts";
import type { Me } from "../../../protocol/schemas/accounts/accounts.ts";
import type { MintedToken } from "../../../protocol/schemas/tokens.ts";
import { getConfig } from "../../../workers/config/config.ts";
import { buildPath, formatRoute, readRoutes, type Route } from "../../harness/server/routes.ts";
import { startHosted, type HostedService } from "../../harness/server/hosted.ts";
import {
  buildDelivery,
  createEvent,
  NOW,
  startPaymentProvider,
  buildSubscription,
  type PaymentProvider,
} from "../../harness/fakes/payments.ts";

let provider: PaymentProvider;
let service: HostedService;
let accessToken: string;

const CLIENT = { "cf-connecting-ip": "192.0.2.1" };

async function post(path: string, body: object, bearer = accessToken) {
  return send(path, { method: "POST", body: JSON.stringify(body) }, bearer);
}

async function send(
  path: string,
  init: RequestInit,
  bearer = accessToken,
): Promise<{ status: number; body: unknown }> {
  const headers = {
    "content-type": "application/json",
    ...CLIENT,
    authorization: `Bearer ${bearer}`,
    ...(init.headers as Record<string, string>),
  };
  const reply = await fetch(service.url + path, { ...init, headers });
  return { status: reply.status, body: await reply.json() };
}

beforeAll(async () => {
  provider = await startPaymentProvider();
  service = await startHosted({ settings: { DEFAULT_PLAN: "free", ...provider.settings } });
  const email = newEmail();
  await post("/auth/signup", { email, password: PASSWORD });
  await service.sql("update users set email_verified_at = now()");
  const { body } = await post("/auth/login", { email, password: PASSWORD });
  accessToken = (body as { access_token: string }).access_token;
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
});

test.each([
  ["free", 402],
  ["pro", 200],
  ["team", 200],
  ["enterprise", 200],
])("on %s, minting a master key is answered with %d", async (plan, status) => {
  await service.sql("update organizations set plan = $1", [plan]);
  const reply = await post("/tokens/master", { name: "ci" });
  expect(reply.status).toBe(status);
  if (status === 402) expect(reply.body).toMatchObject({ error: "upgrade_required" });
});

test("a master key mints tokens while the plan is paid for, and again when it is paid for again", async () => {
  await service.sql("update organizations set plan = 'free'");
  const { body: checkout } = await post("/billing/checkout-session", { plan: "pro" });
  expect((checkout as CheckoutSession).checkout_url).toMatch(/^https:\/\/pay\.example\/cs_/);
  const [customer] = await service.sql<{ customer_id: string }>(
    "select customer_id from billing_customers",
  );
  let seconds = 0;
  const sendStatus = async (id: string, status: "active" | "canceled") => {
    const object = buildSubscription({ id, customer: customer!.customer_id, status });
    const event = createEvent("customer.subscription.updated", object, NOW + (seconds += 1));
    expect(await send("/billing/webhook", buildDelivery(event))).toMatchObject({ status: 200 });
  };
  await sendStatus("sub_first", "active");
  const { body: master } = await post("/tokens/master", { name: "ci" });
  const { bearer } = master as MintedToken;
  const mint = () => post("/projects/default/tokens", { name: "job" }, bearer);
  expect(await mint()).toMatchObject({ status: 200 });

  await sendStatus("sub_first", "canceled");
  expect(await mint()).toMatchObject({ status: 402, body: { error: "upgrade_required" } });
  const { body: billing } = await send("/billing", {});
  expect((billing as Billing).overLimits).toContainEqual(
    expect.objectContaining({ what: "master_keys", allowed: 0 }),
  );

  await sendStatus("sub_second", "active");
  expect(await mint()).toMatchObject({ status: 200 });
});

test("what does not exist is 404 to every credential that its route accepts, before a refusal by the plan, the settings or a provider", async () => {
  await service.sql("update organizations set plan = 'pro'");
  const { body: master } = await post("/tokens/master", { name: "ci" });
  const { body: token } = await post("/tokens", { name: "agent" });
  // This service has no provider to sign in with, no relay, and no replays either.
  await service.sql("update organizations set plan = 'free'");
  const { body: me } = await send("/auth/me", {});
  const { active_org: organization } = me as Me;
  const bearers: Record<string, string | undefined> = {
    none: undefined,
    accessToken,
    capabilityToken: (token as MintedToken).wireBytes,
    masterKey: (master as MintedToken).bearer,
  };

  const routes = (await readRoutes({ anonymous: createCaller(service, CLIENT) })).filter(
    (route) => /\{|\?/.test(addTunnelId(route)) && !("101" in route.responses),
  );
  expect(routes.length).toBeGreaterThan(60);
  for (const route of routes) {
    const accepted = route.security.flatMap(Object.keys);
    for (const [scheme, bearer] of Object.entries(bearers)) {
      const caller = createCaller(service, {
        // Public routes count requests by the address.
        "cf-connecting-ip": newAddress(),
        ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      });
      // A resource inside of one that exists is requested too.
      const isInside = /^\/orgs\/\{id\}\/.*\{/.test(route.path);
      for (const id of isInside ? [undefined, organization.id] : [undefined]) {
        const { status } = await caller.send(
          route.method,
          buildPath({ ...route, path: addTunnelId(route) }, id === undefined ? {} : { "{id}": id }),
          buildExampleBody(route),
        );
        const isAccepted = accepted.length === 0 || accepted.includes(scheme);
        expect([formatRoute(route), scheme, status]).toEqual([
          formatRoute(route),
          scheme,
          isAccepted ? 404 : expect.toSatisfy((refusal) => [401, 403].includes(refusal as number)),
        ]);
      }
    }
  }
});

/** @returns the path with the parameter of its query that names a tunnel, if it has one. */
function addTunnelId({ path, parameters = [] }: Route): string {
  const names = parameters.map(({ name }) => name);
  if (!names.includes("tunnel_id")) return path;
  const metric = names.includes("metric") ? "&metric=requests" : "";
  return `${path}?moved=1${metric}&tunnel_id=${crypto.randomUUID()}`;
}

function buildExampleBody({ requestBody }: Route): RequestInit {
  const [media] = Object.values(requestBody?.content ?? {});
  if (!media) return {};
  return {
    headers: { "content-type": "application/json" },
    body: JSON.stringify(media.example ?? {}),
  };
}

test("mock billing is refused on a hosted service", () => {
  const keys = {
    ENCRYPTION_KEY: btoa("k".repeat(32)),
    JWT_PRIVATE_KEY: "{}",
    TOKEN_SIGNING_KEY: "{}",
    BILLING_MODE: "mock",
  };
  expect(getConfig(keys).BILLING_MODE).toBe("mock");
  expect(() => getConfig({ ...keys, HOSTED: "true" })).toThrow(/mock is not allowed/);
});
