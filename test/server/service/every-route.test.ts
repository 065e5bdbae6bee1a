/** Rules that every route follows. The routes are those of the OpenAPI document, so that no new one is forgotten. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Connection } from "../../../protocol/schemas/tunnels/connections.ts";
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
  startApi,
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
import { createNetwork, newKey } from "../../harness/server/private-networks.ts";
import { createResources, newDomain } from "../../harness/server/resources.ts";
import { createReceiver } from "../../harness/fakes/vendor.ts";

let api: TestApi;
let owner: Person;
let routes: Route[];

beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
  routes = await readRoutes(api);
});
afterAll(() => api.stop());

const guarded = () => routes.filter(isGuarded);
const hasJsonBody = ({ requestBody }: Route) =>
  requestBody?.content["application/json"]?.schema !== undefined;
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

/** Runs the check for several routes at the same time. */
async function forEachRoute(of: Route[], check: (route: Route) => Promise<void>): Promise<void> {
  const CONCURRENT_ROUTES = 10;
  const left = of.values();
  const takeNext = async () => {
    for (const route of left) await check(route);
  };
  await Promise.all(Array.from({ length: CONCURRENT_ROUTES }, takeNext));
}

/** Methods of which every path supports some. */
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

test("every path answers another method with 405, and with a list of its own ones", async () => {
  const byPath = Map.groupBy(routes, ({ path }) => path);
  await forEachRoute(
    [...byPath.values()].map(([route]) => route!),
    async (route) => {
      const documented = byPath.get(route.path)!.map(({ method }) => method);
      const supported = documented.includes("GET") ? [...documented, "HEAD"] : documented;
      const allow = supported.toSorted().join(", ");
      for (const method of METHODS.filter((one) => !documented.includes(one))) {
        const { status, headers } = await api.anonymous.send(method, buildPath(route));
        expect([method, route.path, status, headers.get("allow")]).toEqual([
          method,
          route.path,
          405,
          allow,
        ]);
      }
    },
  );
});

test("every guarded route refuses a caller without a token, and one with an invalid token", async () => {
  const withInvalidToken = createCaller(api.server, { authorization: "Bearer x" });
  await forEachRoute(guarded(), async (route) => {
    const statuses = [
      await requestStatus(route, api.anonymous),
      await requestStatus(route, withInvalidToken),
    ];
    expect([formatRoute(route), ...statuses]).toEqual([formatRoute(route), 401, 401]);
  });
});

test.each([
  ["of people", "GET", "/tunnels"],
  ["of people and master keys", "POST", "/projects/{slug}/tokens"],
  ["of people and agents", "GET", "/private-networks"],
])("credentials of every other form are refused by the routes %s", async (_, method, path) => {
  const route = routes.find((one) => formatRoute(one) === `${method} ${path}`)!;
  for (const authorization of ["Bearer ", "Basic eDp5", owner.accessToken]) {
    const caller = createCaller(api.server, { authorization });
    expect([authorization, await requestStatus(route, caller)]).toEqual([authorization, 401]);
  }
});

test("every route with a body refuses one that is malformed, of the wrong type or too large", async () => {
  const json = { "content-type": "application/json" };
  const tooLarge = JSON.stringify({ padding: "x".repeat(1024 * 1024) });
  const withBody = routes.filter(hasJsonBody);
  await forEachRoute(withBody, async (route) => {
    const by = route.security.length > 0 ? owner : api.anonymous;
    const address = buildPath(route, ownOrganization(route, owner));
    const sendRaw = (headers: Record<string, string>, body: string) =>
      by.send<{ error: string }>(route.method, address, { headers, body });
    const outcomes = [
      await sendRaw(json, "{"),
      await sendRaw(json, "[]"),
      await sendRaw(json, "null"),
      await sendRaw({ "content-type": "text/plain" }, '{"code":1}'),
      await sendRaw({ ...json, "content-encoding": "gzip" }, "{}"),
      await sendRaw({ "content-type": "application/json; charset=latin1" }, "{}"),
      await sendRaw(json, tooLarge),
    ].map(({ status, body }) => `${status} ${body.error}`);
    const notAnObject = /TrafficPolicy$/.test(route.operationId) ? "bad_policy" : "invalid_request";
    expect([formatRoute(route), ...outcomes]).toEqual([
      formatRoute(route),
      "400 invalid_request",
      `400 ${notAnObject}`,
      `400 ${notAnObject}`,
      "415 unsupported_media_type",
      "415 unsupported_media_type",
      "415 unsupported_media_type",
      "413 payload_too_large",
    ]);
  });
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
  "PUT /tunnels/{id}/shards": { shards: 1 },
  "POST /tunnels/{id}/policy/dry-run": { actions: [] },
  "POST /tunnels/{id}/visitor-tokens": { subject: "taken" },
  "PUT /domains/{id}/bind": { tunnel_id: crypto.randomUUID() },
  "PUT /tokens/{nonce}/budget": { monthlyBudgetUsdCents: 0 },
  "POST /webhook-receivers/{id}/rotate": { secret: "taken", overlapHours: 0 },
  "POST /webhook-receivers/{id}/ack": { cursor: "1" },
  "PATCH /projects/{slug}": { name: "Taken" },
  "PUT /private-networks/{id}/server": { server_public_key: newKey(), server_listen_port: 1 },
  "POST /private-networks/{id}/devices": { name: "taken", public_key: newKey() },
  "POST /projects/{slug}/tokens": { name: "taken" },
  "PATCH /orgs/{id}": { name: "Taken" },
  "PATCH /orgs/{id}/members/{user_id}": { role: "viewer" },
  "POST /orgs/{id}/invitations": { email: "taken@example.com", role: "viewer" },
  "PUT /orgs/{id}/budget": { monthlyBudgetUsdCents: 0 },
};

test("an empty body is a missing one, which some routes accept", async () => {
  const person = await api.owner();
  const findResource = await createResources(api, person);
  const accepting = routes.filter(({ requestBody }) => requestBody?.required === false);
  expect(accepting.map(formatRoute)).toEqual(
    expect.arrayContaining([
      "POST /auth/cli/start",
      "PUT /tunnels/{id}/inspector",
      "PUT /tunnels/{id}/maintenance",
      "POST /inspector/{id}/replay",
    ]),
  );
  for (const route of accepting) {
    const path = buildPath(route, hasParameter(route) ? findResource(route) : {});
    const statuses: number[] = [];
    for (const init of [{}, { headers: { "content-type": "application/json" }, body: "" }]) {
      statuses.push((await person.send(route.method, path, init)).status);
    }
    expect([formatRoute(route), statuses[1]]).toEqual([formatRoute(route), statuses[0]]);
    expect([formatRoute(route), statuses[0]]).not.toEqual([formatRoute(route), 400]);
  }
});

test("a path with an impossible id is answered like one with an unknown id", async () => {
  const { id: networkId } = await createNetwork(owner);
  const findOuter = (route: Route): Record<string, string> =>
    route.path.includes("{device_id}") ? { "{id}": networkId } : ownOrganization(route, owner);
  await forEachRoute(guarded().filter(hasParameter), async (route) => {
    const body = JSON.stringify(BODIES[formatRoute(route)] ?? {});
    const init = hasJsonBody(route)
      ? { headers: { "content-type": "application/json" }, body }
      : {};
    const send = (values: Record<string, string>) =>
      owner.send<{ message: string }>(route.method, buildPath(route, values), init);
    for (const parameter of route.path.match(/\{\w+\}/g) ?? []) {
      const { [parameter]: _, ...others } = findOuter(route);
      const unknown = await send(others);
      expect([formatRoute(route), unknown.status]).toEqual([formatRoute(route), 404]);
      expect(unknown.body.message).toMatch(/^There is no /);
      for (const invalid of ["x", "%00", "%27%20or%20true--", "x".repeat(1000)]) {
        const { status, body } = await send({ ...others, [parameter]: invalid });
        const expected = [formatRoute(route), invalid, 404, unknown.body];
        expect([formatRoute(route), invalid, status, body]).toEqual(expected);
      }
    }
  });
});

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
  const findResource = await createResources(api, victim);
  const before = await readResources(victim);
  await forEachRoute(guarded().filter(hasParameter), async (route) => {
    const body = BODIES[formatRoute(route)];
    const status = await requestStatus(route, otherOwner, findResource(route), body);
    expect([formatRoute(route), status]).toEqual([formatRoute(route), 404]);
  });
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
    const foreign = await otherOwner.get(`${path}?after=${after}`);
    expect([path, foreign.status]).toEqual([path, 400]);
    expect(foreign.body).toEqual(
      (await otherOwner.get(`${path}?after=${crypto.randomUUID()}`)).body,
    );
  }
  expect((await otherOwner.get<unknown[]>("/tunnels")).body).toEqual([]);
  expect((await otherOwner.get<unknown[]>("/tokens")).body).toEqual([]);
  expect((await otherOwner.get<unknown[]>("/orgs")).body).toHaveLength(1);
});

test("a page after a deleted row continues the list or is refused, and never ends it", async () => {
  const person = await api.owner();
  const { id: networkId } = await createNetwork(person);
  const newName = () => `paged-${crypto.randomUUID().slice(0, 8)}`;
  const bodies: [string, () => object][] = [
    ["/domains", () => ({ domain: newDomain() })],
    ["/reserved-subdomains", () => ({ subdomain: newName() })],
    ["/private-networks", () => ({ name: newName(), cidr: "10.9.0.0/24" })],
    [`/private-networks/${networkId}/devices`, () => ({ name: newName(), public_key: newKey() })],
  ];
  for (const [path, getBody] of bodies) {
    await person.post(path, getBody());
    const { body } = await person.post<{ id: string; device?: { id: string } }>(path, getBody());
    const id = body.device?.id ?? body.id;
    expect((await person.get<unknown[]>(`${path}?after=${id}`)).body).not.toEqual([]);
    await person.delete(`${path}/${id}`);
    const reply = await person.get(`${path}?after=${id}`);
    const fields = [{ path: "after", message: expect.stringMatching(/start again without it$/) }];
    expect(reply).toMatchObject({ status: 400, body: { error: "invalid_request", fields } });
  }
  const create = () => person.post<Tunnel>("/tunnels", { localPort: 1 });
  const [older, newer] = [(await create()).body, (await create()).body];
  await person.delete(`/tunnels/${newer.id}`);
  const { body: rest } = await person.get<Tunnel[]>(`/tunnels?after=${newer.id}`);
  expect(rest.map(({ id }) => id)).toEqual([older.id]);
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
      ...(hasJsonBody(route) ? ["400", "413", "415"] : []),
    ];
    expect([formatRoute(route), Object.keys(route.responses)]).toEqual([
      formatRoute(route),
      expect.arrayContaining(expected),
    ]);
  }
});
