import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { startApi, type Caller, type Person, type TestApi } from "../../harness/server/api.ts";

let api: TestApi;
let owner: Person;
let id: string;
beforeAll(async () => {
  // The provider does not run, because no test signs in: a gate only requires that one is configured.
  api = await startApi();
  owner = await api.owner();
  id = await createTunnel();
});
afterAll(() => api?.stop());

const EMPTY_LISTS = { allowed_domains: [], allowed_emails: [] };
interface Refusal {
  error: string;
  fields: { path: string }[];
}

const put = (body: unknown, tunnelId = id, by: Caller = owner) =>
  by.send<Refusal>("PUT", `/tunnels/${tunnelId}/edge-auth`, {
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

async function createTunnel(by: Person = owner): Promise<string> {
  return (await by.post<Tunnel>("/tunnels", { localPort: 1 })).body.id;
}

async function readStoredGate(tunnelId: string): Promise<unknown> {
  const [row] = await api.sql<{ identity_gate: unknown }>(
    "select identity_gate from tunnels where id = $1",
    [tunnelId],
  );
  return row!.identity_gate;
}

test("an identity gate is set, replaced as a whole, listed, removed and recorded in the audit log", async () => {
  const tunnelId = await createTunnel();
  const listed = async () =>
    (await owner.get<Tunnel[]>("/tunnels")).body.find((tunnel) => tunnel.id === tunnelId)!
      .edgeAuthEnabled;
  expect(await listed()).toBe(false);
  const lists = { provider: "idp_a", allowed_domains: ["example.com"], allowed_emails: [] };
  const answer = { status: 200, body: { id: tunnelId, edge_auth_enabled: true } };
  expect(await put(lists, tunnelId)).toMatchObject(answer);
  expect(await put({ ...EMPTY_LISTS, allowed_emails: ["a@b.test"] }, tunnelId)).toMatchObject(
    answer,
  );
  expect(await readStoredGate(tunnelId)).toEqual({ domains: [], emails: ["a@b.test"] });
  expect(await listed()).toBe(true);
  const viewer = await api.colleague(owner, "viewer");
  const read = async () => (await viewer.get(`/tunnels/${tunnelId}/edge-auth`)).body;
  const inForce = { provider: "idp_a", allowed_domains: [], allowed_emails: ["a@b.test"] };
  expect(await read()).toEqual({ id: tunnelId, edge_auth_enabled: true, ...inForce });
  const removed = await owner.delete(`/tunnels/${tunnelId}/edge-auth`);
  expect(removed).toMatchObject({ status: 200, body: { id: tunnelId, edge_auth_enabled: false } });
  expect([await listed(), await readStoredGate(tunnelId)]).toEqual([false, null]);
  const none = { provider: null, allowed_domains: null, allowed_emails: null };
  expect(await read()).toEqual({ id: tunnelId, edge_auth_enabled: false, ...none });
  const events = await api.sql<{ action: string }>(
    "select action from audit_events where resource_id = $1 order by created_at",
    [tunnelId],
  );
  expect(events.map(({ action }) => action)).toEqual([
    "tunnel_created",
    "tunnel_edge_auth_set",
    "tunnel_edge_auth_set",
    "tunnel_edge_auth_removed",
  ]);
});

test("an identity gate stores normalized addresses without duplicates", async () => {
  const allowed_emails = [" Ann@Example.COM ", "ann@example.com", "bob@example.com"];
  const allowed_domains = [
    "EXAMPLE.com",
    "example.com.",
    " bücher.example ",
    "xn--bcher-kva.example",
  ];
  expect((await put({ allowed_domains, allowed_emails })).status).toBe(200);
  expect(await readStoredGate(id)).toEqual({
    domains: ["example.com", "xn--bcher-kva.example"],
    emails: ["ann@example.com", "bob@example.com"],
  });
});

test("an identity gate accepts full-width letters, which the document leaves out", async () => {
  const tunnelId = await createTunnel();
  const { status } = await fetch(`${api.server.url}/tunnels/${tunnelId}/edge-auth`, {
    method: "PUT",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${owner.accessToken}`,
    },
    body: JSON.stringify({ allowed_domains: [], allowed_emails: ["ｂob@example.com"] }),
  });
  expect(status).toBe(200);
  expect(await readStoredGate(tunnelId)).toEqual({ domains: [], emails: ["bob@example.com"] });
});

describe("an identity gate is refused", () => {
  const MANY = Array.from({ length: 101 }, (_, n) => `a${n}@b.test`);
  test.each<[string, object, string]>([
    ["with 101 addresses", { ...EMPTY_LISTS, allowed_emails: MANY }, "allowed_emails"],
    [
      "with 101 domains",
      { ...EMPTY_LISTS, allowed_domains: Array(101).fill("b.test") },
      "allowed_domains",
    ],
    ["without domains", { allowed_emails: [] }, "allowed_domains"],
    ["without addresses", { allowed_domains: [] }, "allowed_emails"],
    ["with a string for a list", { ...EMPTY_LISTS, allowed_emails: "a@b.test" }, "allowed_emails"],
    ["with a number", { ...EMPTY_LISTS, allowed_emails: ["a@b.test", 1] }, "allowed_emails[1]"],
    [
      "with an address for a domain",
      { ...EMPTY_LISTS, allowed_domains: ["a@b.test"] },
      "allowed_domains[0]",
    ],
    [
      "with a domain for an address",
      { ...EMPTY_LISTS, allowed_emails: ["b.test"] },
      "allowed_emails[0]",
    ],
    [
      "with a wildcard for every domain",
      { ...EMPTY_LISTS, allowed_domains: ["*"] },
      "allowed_domains[0]",
    ],
    [
      "with a wildcard subdomain",
      { ...EMPTY_LISTS, allowed_domains: ["*.b.test"] },
      "allowed_domains[0]",
    ],
    [
      "with a top-level domain",
      { ...EMPTY_LISTS, allowed_domains: ["b.test", "com"] },
      "allowed_domains[1]",
    ],
    ["with an empty domain", { ...EMPTY_LISTS, allowed_domains: [""] }, "allowed_domains[0]"],
    [
      "with an IP address",
      { ...EMPTY_LISTS, allowed_domains: ["127.0.0.1"] },
      "allowed_domains[0]",
    ],
    ["with a URL", { ...EMPTY_LISTS, allowed_domains: ["http://b.test"] }, "allowed_domains[0]"],
    ["with a port", { ...EMPTY_LISTS, allowed_domains: ["b.test:80"] }, "allowed_domains[0]"],
    [
      "with a line break",
      { ...EMPTY_LISTS, allowed_emails: ["a@b.test\r\nc@d.test"] },
      "allowed_emails[0]",
    ],
    ["with a NUL", { ...EMPTY_LISTS, allowed_emails: ["a\0@b.test"] }, "allowed_emails[0]"],
    [
      "with 300 characters",
      { ...EMPTY_LISTS, allowed_emails: [`${"a".repeat(300)}@b.test`] },
      "allowed_emails[0]",
    ],
  ])("%s", async (_, body, field) => {
    const { status, body: refusal } = await put(body);
    expect([status, refusal.error, refusal.fields[0]?.path]).toEqual([
      400,
      "invalid_request",
      field,
    ]);
  });

  test.each(["idp_b", "google", ""])("for the provider %j", async (provider) => {
    const refused = await put({ ...EMPTY_LISTS, provider });
    expect(refused).toMatchObject({ status: 400, body: { error: "unsupported_provider" } });
    expect((await put({ ...EMPTY_LISTS, provider: 1 })).body.error).toBe("invalid_request");
  });

  test("for a tunnel of another organization, a deleted tunnel, and for viewers", async () => {
    const otherOwner = await api.owner();
    expect((await put(EMPTY_LISTS, id, otherOwner)).status).toBe(404);
    expect((await otherOwner.delete(`/tunnels/${id}/edge-auth`)).status).toBe(404);
    expect((await put(EMPTY_LISTS, id, await api.colleague(owner, "viewer"))).status).toBe(403);
    const deletedId = await createTunnel();
    await owner.delete(`/tunnels/${deletedId}`);
    expect((await put(EMPTY_LISTS, deletedId)).status).toBe(404);
    expect((await owner.delete(`/tunnels/${deletedId}/edge-auth`)).status).toBe(404);
  });

  test("on the free plan, even during a trial, but can be removed on any plan", async () => {
    const person = await api.owner();
    const tunnelId = await createTunnel(person);
    const updateOrganization = (values: string) =>
      api.sql(`update organizations set ${values} where id = $1`, [person.orgId]);
    const UPGRADE = { status: 402, body: { error: "upgrade_required" } };
    await updateOrganization("plan = 'free', trial_ends_at = null");
    expect(await put(EMPTY_LISTS, tunnelId, person)).toMatchObject(UPGRADE);
    await updateOrganization("trial_ends_at = now() + interval '1 hour'");
    expect(await put(EMPTY_LISTS, tunnelId, person)).toMatchObject(UPGRADE);
    await updateOrganization("plan = 'pro', trial_ends_at = null");
    expect((await put(EMPTY_LISTS, tunnelId, person)).status).toBe(200);
    await updateOrganization("plan = 'free'");
    expect((await person.delete(`/tunnels/${tunnelId}/edge-auth`)).status).toBe(200);
  });

  test("when no provider is configured, and visitors are not redirected", async () => {
    await using bare = await startApi({ kind: "public" });
    const person = await bare.owner();
    const { body } = await person.post<Tunnel>("/tunnels", { localPort: 1 });
    const refused = await put(EMPTY_LISTS, body.id, person);
    expect(refused).toMatchObject({ status: 503, body: { error: "provider_not_configured" } });
    for (const [path, code] of [
      [`start?moved=1&tunnel_id=${body.id}`, "not_found"],
      ["callback?code=a&state=b", "provider_not_configured"],
    ]) {
      const { headers } = await bare.anonymous.get(`/edge-auth/${path}`);
      expect([path, headers.get("underpass-error")]).toEqual([path, code]);
    }
  });
});

test("the sign-ins of visitors are limited by address, so that those of an office can sign in at once", async () => {
  await using strict = await startApi({ kind: "public" });
  const ask = (path: string) => strict.anonymous.get<Refusal>(`/edge-auth/${path}`);
  const start = `start?moved=1&tunnel_id=${crypto.randomUUID()}`;
  const signIns = Array.from({ length: 60 }, () => [ask(start), ask("callback?state=b")]).flat();
  const codes = (await Promise.all(signIns)).map(({ body }) => body.error);
  expect([...new Set(codes)].sort()).toEqual(["not_found", "provider_not_configured"]);
  const more = await Promise.all(Array.from({ length: 60 }, () => ask(start)));
  const limited = more.filter(({ body }) => body.error === "rate_limited");
  expect(limited.length).toBeGreaterThan(0);
  expect(limited[0]!.headers.get("retry-after")).toBe("1");
});
