/** The effects of plan changes on existing tunnels, with `BILLING_MODE=mock`. */
import PostalMime from "postal-mime";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Me } from "../../../protocol/schemas/accounts/accounts.ts";
import type { Billing, CheckoutSession, PortalSession } from "../../../protocol/schemas/billing.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { waitUntil } from "../../harness/server/api.ts";
import { startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import {
  basicAuthorization,
  findErrorCode,
  startTunnelOwner,
  type TunnelOwner,
} from "../../harness/tunnel/owned-tunnel.ts";
import { deliver, createReceiver } from "../../harness/fakes/vendor.ts";
import { waitForCaptures } from "../../harness/tunnel/visited-tunnel.ts";

let stack: TunnelOwner;
let origin: RawOrigin;
beforeAll(async () => {
  origin = await startRawOrigin();
  stack = await startTunnelOwner({ kind: "mockBilling" });
});
afterAll(async () => {
  await stack?.stop();
  await origin?.stop();
});

async function checkout(body: object): Promise<string> {
  const reply = await stack.owner.post<CheckoutSession>("/billing/checkout-session", body);
  return reply.body.checkout_url;
}

/** On the host of the API that Node.js resolves. */
function open(url: string, init: RequestInit = {}): Promise<Response> {
  const { pathname, search } = new URL(url);
  return fetch(stack.api.server.url + pathname + search, { redirect: "manual", ...init });
}

async function buy(plan: "pro" | "team"): Promise<void> {
  expect((await open(await checkout({ plan }))).status).toBe(200);
}

const cancel = () => stack.owner.post<Billing>("/billing/cancel");
const billing = async () => (await stack.owner.get<Billing>("/billing")).body;
const planNow = async () => (await stack.owner.get<Me>("/auth/me")).body.entitlements.plan;

beforeEach(() => cancel());

test("a password or sign-in that the plan lacks refuses all requests from the next one on, and works again with the plan", async () => {
  await buy("pro");
  const [locked, signIn, free] = [
    await stack.expose("with-password", origin.port),
    await stack.expose("with-sign-in", origin.port),
    await stack.expose("with-nothing", origin.port),
  ];
  await locked.put("auth", { username: "ann", password: "open sesame" });
  await signIn.put("edge-auth", { provider: "idp_a", allowed_domains: [], allowed_emails: [] });
  const right = basicAuthorization("ann", "open sesame");
  const codes = async () => [
    findErrorCode(await locked.visit("/", right)),
    findErrorCode(await locked.visit()),
    findErrorCode(await signIn.visit()),
    findErrorCode(await free.visit()),
  ];
  expect(await codes()).toEqual(["passed", "unauthorized", "unauthorized", "passed"]);

  await cancel();
  const closed = "upgrade_required";
  expect(await codes()).toEqual([closed, closed, closed, "passed"]);
  const refused = await locked.visit("/", { ...right, accept: "text/html" });
  expect([refused.status, refused.body.toString()]).toEqual([
    402,
    expect.stringContaining("Tunnel closed"),
  ]);
  expect(await locked.getListed()).toMatchObject({ authEnabled: true });
  expect((await billing()).overLimits).toEqual([
    { what: "tunnel_passwords", count: 1, allowed: 0 },
    { what: "identity_gates", count: 1, allowed: 0 },
  ]);
  expect(await locked.put("auth", { username: "a", password: "another one" })).toMatchObject({
    status: 402,
    body: { error: closed },
  });
  // Another change does not open the tunnel.
  await locked.put("policy", { actions: [{ kind: "deny", path_prefix: "/admin" }] });
  expect(findErrorCode(await locked.visit("/", right))).toBe(closed);

  await buy("pro");
  expect(await codes()).toEqual(["passed", "unauthorized", "unauthorized", "passed"]);
  await cancel();
  await locked.remove("auth");
  expect(findErrorCode(await locked.visit())).toBe("passed");
  expect(findErrorCode(await locked.visit("/admin"))).toBe("forbidden");
});

test("a gate of a tunnel that does not exist is 404, whatever the plan includes", async () => {
  for (const [gate, body] of [
    ["auth", { username: "ann", password: "open sesame" }],
    ["edge-auth", { provider: "idp_a", allowed_domains: [], allowed_emails: [] }],
  ] as const) {
    const path = `/tunnels/${crypto.randomUUID()}/${gate}`;
    expect((await stack.owner.put(path, body)).status).toBe(404);
  }
});

test("a checkout never lowers the plan, whenever it was begun", async () => {
  const begun = await checkout({ plan: "pro" });
  await buy("team");
  expect((await open(begun)).status).toBe(409);
  const lower = await stack.owner.post("/billing/checkout-session", { plan: "pro" });
  expect(lower).toMatchObject({ status: 409, body: { error: "conflict" } });
  expect(await planNow()).toBe("team");
  const yearly = await checkout({ plan: "team", billing_cycle: "yearly" });
  expect((await open(yearly)).status).toBe(200);
  await cancel();
  await stack.api.sql("update organizations set plan = 'enterprise' where id = $1", [
    stack.owner.orgId,
  ]);
  expect((await stack.owner.post("/billing/checkout-session", { plan: "team" })).status).toBe(409);
  await stack.api.sql("update organizations set plan = 'free' where id = $1", [stack.owner.orgId]);
});

test("owners get a mail about the tunnels that are closed", async () => {
  await buy("team");
  for (const n of [1, 2])
    await stack.owner.post("/reserved-subdomains", { subdomain: `plan-reserved-${n}` });
  await cancel();
  const mail = await waitUntil(async () => {
    const mails = await stack.api.readMailsTo(stack.owner.email);
    const read = await Promise.all(mails.map((source) => PostalMime.parse(source)));
    return read.find(({ text }) => text?.includes("Reserved subdomains: 2. You keep them"));
  });
  expect(mail.subject).toBe("Your Underpass plan is now free");
  const more = await stack.owner.post("/reserved-subdomains", { subdomain: "plan-reserved-3" });
  expect(more).toMatchObject({ status: 402, body: { error: "upgrade_required" } });
  expect((await stack.owner.get<unknown[]>("/reserved-subdomains")).body).toHaveLength(2);
});

test("tunnels have the lifetime of the current plan, and never a longer one than requested", async () => {
  await buy("team");
  const connected = await stack.expose("long-lived", origin.port);
  const { body: brief } = await stack.owner.post<Tunnel>("/tunnels", {
    localPort: 1,
    ttlSeconds: 600,
  });
  const leftMs = async (id: string) => {
    const { body } = await stack.owner.get<Tunnel[]>("/tunnels");
    return Date.parse(body.find((tunnel) => tunnel.id === id)!.expiresAt!) - Date.now();
  };
  const HOUR_MS = 3600_000;
  expect(await leftMs(connected.id)).toBeGreaterThan(6 * 24 * HOUR_MS);
  const before = await leftMs(brief.id);
  await cancel();
  expect(await leftMs(connected.id)).toBeLessThanOrEqual(HOUR_MS + 60_000);
  expect(await leftMs(brief.id)).toBeLessThanOrEqual(before);
  expect(findErrorCode(await connected.visit())).toBe("passed");

  await buy("pro");
  expect(await leftMs(connected.id)).toBeGreaterThan(23 * HOUR_MS);
  expect(await leftMs(brief.id)).toBeLessThanOrEqual(before);
});

test("a tunnel gets the new retention of captures, and its settings stay", async () => {
  const tunnel = await stack.expose("plan-captured", origin.port);
  await tunnel.put("inspector", { capture: false });
  await buy("pro");
  // Delivered before the response to the purchase, so nothing is left in the outbox.
  const waiting = await stack.api.sql("select 1 from outbox where kind = 'tunnel_capturing'");
  expect(waiting).toEqual([]);
  await tunnel.visit("/unseen");
  await tunnel.put("inspector", { capture: true });
  await cancel();
  await tunnel.visit("/seen");
  const paths = (await waitForCaptures(stack.owner, { tunnel_id: tunnel.id }, 1)).map(
    ({ path }) => path,
  );
  expect(paths).toEqual(["/seen"]);
});

test("a webhook receiver gets the new retention of deliveries, and continues to accept them", async () => {
  await buy("pro");
  const receiver = await createReceiver(stack.owner);
  const delivered = async () => (await deliver(stack.api.server, receiver)).status;
  expect(await delivered()).toBe(200);
  const versions = () =>
    stack.api.sql("select version from webhook_receivers where id = $1", [receiver.id]);
  expect(await versions()).toEqual([{ version: 1 }]);
  await cancel();
  expect(await versions()).toEqual([{ version: 2 }]);
  expect(await delivered()).toBe(200);
});

describe("the mock provider", () => {
  test("completes a purchase at the checkout's address once, however many requests open it", async () => {
    const url = await checkout({ plan: "team", billing_cycle: "yearly" });
    expect(await planNow()).toBe("free");
    const opened = await Promise.all(Array.from({ length: 10 }, () => open(url)));
    expect(opened.map(({ status }) => status).sort()).toEqual([200, ...Array<number>(9).fill(410)]);
    expect(await billing()).toMatchObject({ mode: "mock", plan: "team", cycle: "yearly" });
    await cancel();
    expect((await open(url)).status).toBe(410);
    expect(await planNow()).toBe("free");
  });

  test("refuses an address that was changed or is for another purpose", async () => {
    const url = await checkout({ plan: "pro" });
    const { body } = await stack.owner.post<PortalSession>("/billing/portal");
    const [token, portal] = [url, body.portal_url].map((link) => new URL(link).search);
    for (const address of [
      `/billing/mock/checkout${portal}`,
      `/billing/mock/portal${token}`,
      `/billing/mock/checkout${token}x`,
      `/billing/mock/checkout?token=v1.x.y.z`,
      "/billing/mock/checkout",
    ])
      expect([address, (await open(`http://x${address}`)).status]).toEqual([address, 404]);
    expect(await planNow()).toBe("free");
  });

  test("cancels a subscription, and canceling again changes nothing", async () => {
    await buy("pro");
    expect(await cancel()).toMatchObject({
      status: 200,
      body: { plan: "free", status: "canceled" },
    });
    expect(await cancel()).toMatchObject({
      status: 200,
      body: { plan: "free", status: "canceled" },
    });
  });

  test("refuses unknown and inapplicable actions in the portal", async () => {
    const { body } = await stack.owner.post<PortalSession>("/billing/portal");
    const act = (action: string) =>
      open(body.portal_url, { method: "POST", body: new URLSearchParams({ action }) });
    expect((await act("fail")).status).toBe(400);
    await buy("pro");
    expect((await act("explode")).status).toBe(400);
    expect((await act("give_up")).status).toBe(303);
    expect(await billing()).toMatchObject({ plan: "free", status: "unpaid" });
    expect((await act("pay")).status).toBe(303);
    expect(await billing()).toMatchObject({ plan: "pro", status: "active" });
  });
});
