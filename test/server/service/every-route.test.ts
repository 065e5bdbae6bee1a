/** Rules that every route follows. The routes are those of the OpenAPI document, so that no new one is forgotten. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Connection } from "../../../protocol/schemas/tunnels/connections.ts";
import { CaptureIdGenerator } from "../../../protocol/capture-id.ts";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import type { PrivateNetwork } from "../../../protocol/schemas/networks.ts";
import type {
  Invitation,
  Member,
  Organization,
} from "../../../protocol/schemas/organizations/organizations.ts";
import type { Project } from "../../../protocol/schemas/organizations/projects.ts";
import type { Receiver } from "../../../protocol/schemas/webhooks.ts";
import type { ReservedSubdomain } from "../../../protocol/schemas/domains/reserved-subdomains.ts";
import type { Token } from "../../../protocol/schemas/tokens.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  createCaller,
  mintToken,
  newEmail,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import {
  buildPath,
  isGuarded,
  formatRoute,
  readRoutes,
  requestStatus,
  type Route,
} from "../../harness/server/routes.ts";
import { createNetwork, enroll, newKey } from "../../harness/server/private-networks.ts";
import { createReceiver } from "../../harness/fakes/vendor.ts";

let api: TestApi;
let owner: Person;
let routes: Route[];

beforeAll(async () => {
  // No test signs in with this provider, but some routes answer 503 at once when none is configured.
  const issuer = "http://127.0.0.1:1";
  const provider = { IDP_A_ISSUER: issuer, IDP_A_CLIENT_ID: "id", IDP_A_CLIENT_SECRET: "secret" };
  api = await startApi({ env: provider });
  owner = await api.owner();
  routes = await readRoutes(api);
});
afterAll(() => api.stop());

const guarded = () => routes.filter(isGuarded);
const hasParameter = ({ path }: Route) => path.includes("{");

test("the document contains the routes that these tests request", () => {
  expect(routes.map(formatRoute)).toEqual(
    expect.arrayContaining([
      "GET /tunnels",
      "DELETE /tokens/{nonce}",
      "POST /auth/cli/authorize",
      "PATCH /orgs/{id}/members/{user_id}",
    ]),
  );
  expect(guarded().length).toBeGreaterThanOrEqual(26);
});

test("every guarded route refuses a caller without a token, and one with an invalid token", async () => {
  for (const route of guarded()) {
    expect([formatRoute(route), await requestStatus(route, api.anonymous)]).toEqual([
      formatRoute(route),
      401,
    ]);
    for (const bearer of ["Bearer x", "Bearer ", "Basic eDp5", owner.accessToken]) {
      const caller = createCaller(api.server, { authorization: bearer });
      expect([formatRoute(route), await requestStatus(route, caller)]).toEqual([
        formatRoute(route),
        401,
      ]);
    }
  }
});

test("every route with a body refuses one that is malformed, of the wrong type or too large", async () => {
  const json = { "content-type": "application/json" };
  for (const route of routes.filter(({ requestBody }) => requestBody)) {
    const by = route.security ? owner : api.anonymous;
    const address = buildPath(route, ownOrganization(route, owner));
    const sendRaw = (headers: Record<string, string>, body: string) =>
      by.send<{ error: string }>(route.method, address, { headers, body });
    const outcomes = [
      await sendRaw(json, "{"),
      await sendRaw(json, "[]"),
      await sendRaw(json, "null"),
      await sendRaw({ "content-type": "text/plain" }, '{"code":1}'),
      await sendRaw(json, JSON.stringify({ padding: "x".repeat(1024 * 1024) })),
    ].map(({ status, body }) => `${status} ${body.error}`);
    expect([formatRoute(route), ...outcomes]).toEqual([
      formatRoute(route),
      "400 invalid_request",
      "400 invalid_request",
      "400 invalid_request",
      "415 unsupported_media_type",
      "413 payload_too_large",
    ]);
  }
});

/** In such a path the guard checks the role in the organization of the id; in others the id names another resource. */
function ownOrganization({ path }: Route, { orgId }: Person): Record<string, string> {
  return path.startsWith("/orgs/") ? { "{id}": orgId } : {};
}

/** Valid bodies for the routes that validate the body before they look up the resource in the path. */
const BODIES: Record<string, unknown> = {
  "PUT /tunnels/{id}/auth": { username: "eve", password: "open sesame" },
  "PUT /tunnels/{id}/edge-auth": { allowed_domains: [], allowed_emails: [] },
  "PUT /tunnels/{id}/inspector": {},
  "PUT /tunnels/{id}/ip-allowlist": { cidrs: ["192.0.2.0/24"] },
  "PUT /tunnels/{id}/policy": { actions: [] },
  "PUT /domains/{id}/bind": { tunnel_id: crypto.randomUUID() },
  "PUT /tokens/{nonce}/budget": { monthlyBudgetUsdCents: 0 },
  "POST /webhook-receivers/{id}/rotate": { secret: "taken", overlapHours: 0 },
  "POST /webhook-receivers/{id}/ack": { cursor: "1" },
  "PATCH /projects/{slug}": { name: "Taken" },
  "PUT /private-networks/{id}/server": { server_public_key: newKey(), server_listen_port: 1 },
  "POST /private-networks/{id}/devices": { name: "taken", public_key: newKey() },
  "POST /projects/{slug}/tokens": { name: "taken" },
};

test("a path with an impossible id answers 404", async () => {
  for (const route of guarded().filter(hasParameter)) {
    for (const parameter of route.path.match(/\{\w+\}/g) ?? []) {
      for (const invalid of ["x", "%00", "%27%20or%20true--", "x".repeat(1000)]) {
        const values = { ...ownOrganization(route, owner), [parameter]: invalid };
        const status = await requestStatus(route, owner, values, BODIES[formatRoute(route)]);
        expect([formatRoute(route), invalid, status]).toEqual([formatRoute(route), invalid, 404]);
      }
    }
  }
});

const newDomain = () => `${crypto.randomUUID()}.example`;

/** Creates resources of every kind. @returns by the prefix of a path: the parameters that name them. */
async function createResources(of: Person) {
  const member = await api.colleague(of, "member");
  const { body: tunnel } = await of.post<Tunnel>("/tunnels", { localPort: 1 });
  const { body: domain } = await of.post<CustomDomain>("/domains", { domain: newDomain() });
  const { body: subdomain } = await of.post<ReservedSubdomain>("/reserved-subdomains", {
    subdomain: `reserved-${crypto.randomUUID()}`,
  });
  const receiver = await createReceiver(of);
  const network = await createNetwork(of);
  const { device } = await enroll(of, network.id);
  const { nonce, wireBytes } = await mintToken(of);
  await api.connectAgent(wireBytes, { port: 1 });
  const [connection] = await waitUntil(async () => {
    const { body } = await of.get<Connection[]>("/connections");
    return body.length > 0 && body;
  });
  const { body: project } = await of.post<Project>("/projects", { slug: "shop", name: "Shop" });
  const { body: list } = await of.get<{ sessions: { id: string }[] }>("/auth/sessions");
  const { body: invitation } = await of.post<Invitation>(`/orgs/${of.orgId}/invitations`, {
    email: newEmail(),
    role: "viewer",
  });
  const values = {
    "/tunnels/": { "{id}": tunnel.id },
    "/inspector/": { "{id}": new CaptureIdGenerator(tunnel.id).next(Date.now()) },
    "/connections/": { "{agent_id}": connection!.agent_id },
    "/domains/": { "{id}": domain.id },
    "/reserved-subdomains/": { "{id}": subdomain.id },
    "/webhook-receivers/": { "{id}": receiver.id },
    "/private-networks/": { "{id}": network.id, "{device_id}": device.id },
    "/tokens/": { "{nonce}": nonce },
    "/projects/": { "{slug}": project.slug },
    "/auth/sessions/": { "{id}": list.sessions[0]!.id },
    "/orgs/": {
      "{id}": of.orgId,
      "{user_id}": member.userId,
      "{invitation_id}": invitation.id,
    },
  };
  return Object.entries(values);
}

async function readResources(of: Person) {
  return {
    tunnels: (await of.get<Tunnel[]>("/tunnels")).body,
    connections: (await of.get<Connection[]>("/connections")).body,
    domains: (await of.get<CustomDomain[]>("/domains")).body,
    subdomains: (await of.get<ReservedSubdomain[]>("/reserved-subdomains")).body,
    receivers: (await of.get<Receiver[]>("/webhook-receivers")).body,
    networks: (await of.get<PrivateNetwork[]>("/private-networks")).body,
    tokens: (await of.get<Token[]>("/tokens")).body,
    projects: (await of.get<Project[]>("/projects")).body,
    organization: (await of.get<Organization>(`/orgs/${of.orgId}`)).body,
    members: (await of.get<Member[]>(`/orgs/${of.orgId}/members`)).body,
    invitations: (await of.get<Invitation[]>(`/orgs/${of.orgId}/invitations`)).body,
  };
}

test("a resource of another organization or account answers 404 and does not change", async () => {
  const [victim, otherOwner] = [await api.owner(), await api.owner()];
  const resources = await createResources(victim);
  const before = await readResources(victim);
  for (const route of guarded().filter(hasParameter)) {
    const [, values] = resources.find(([prefix]) => route.path.startsWith(prefix)) ?? [];
    if (!values) throw new Error(`createResources has nothing for ${formatRoute(route)}`);
    const status = await requestStatus(route, otherOwner, values, BODIES[formatRoute(route)]);
    expect([formatRoute(route), status]).toEqual([formatRoute(route), 404]);
  }
  expect(await readResources(victim)).toEqual(before);
});

test("lists contain nothing of another organization, from any cursor on", async () => {
  const [victim, otherOwner] = [await api.owner(), await api.owner()];
  const { body: tunnel } = await victim.post<Tunnel>("/tunnels", { localPort: 1 });
  const { id: tokenId } = await mintToken(victim);
  const { body: domain } = await victim.post<CustomDomain>("/domains", { domain: newDomain() });
  const { body: project } = await victim.post<Project>("/projects", { slug: "shop", name: "Shop" });
  const { id: receiverId } = await createReceiver(victim);
  const { id: networkId } = await createNetwork(victim);
  for (const [path, after] of [
    ["/tunnels", tunnel.id],
    ["/tokens", tokenId],
    ["/projects", project.id],
    ["/domains", domain.id],
    ["/webhook-receivers", receiverId],
    ["/private-networks", networkId],
    ["/orgs", victim.orgId],
  ]) {
    expect((await otherOwner.get<unknown[]>(`${path}?after=${after}`)).body).toEqual([]);
  }
  expect((await otherOwner.get<unknown[]>("/tunnels")).body).toEqual([]);
  expect((await otherOwner.get<unknown[]>("/tokens")).body).toEqual([]);
  expect((await otherOwner.get<unknown[]>("/orgs")).body).toHaveLength(1);
});

test("no response is cached, sniffed as another type, or reveals code", async () => {
  for (const route of routes) {
    for (const by of [owner, api.anonymous]) {
      // One of these requests signs the owner out, so every status is accepted.
      const { headers, body } = await by.send(route.method, buildPath(route));
      const isKeySet = route.path === "/.well-known/jwks.json";
      expect([
        formatRoute(route),
        headers.get("cache-control"),
        headers.get("x-content-type-options"),
      ]).toEqual([formatRoute(route), isKeySet ? "public, max-age=300" : "no-store", "nosniff"]);
      expect([formatRoute(route), JSON.stringify(body)]).not.toEqual([
        formatRoute(route),
        expect.stringMatching(/\.[jt]s:\d|node_modules|\bat async\b|drizzle|postgres/i),
      ]);
    }
  }
});

test("every route documents its refusals", () => {
  for (const route of routes) {
    const expected = [
      ...(isGuarded(route) ? ["401"] : []),
      ...(isGuarded(route) && hasParameter(route) ? ["404"] : []),
      ...(route.requestBody ? ["400", "413", "415"] : []),
    ];
    expect([formatRoute(route), Object.keys(route.responses)]).toEqual([
      formatRoute(route),
      expect.arrayContaining(expected),
    ]);
  }
});
