/** Nothing of one organization is read or changed by another. New routes of the OpenAPI document are covered without a change here. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Metrics } from "../../../protocol/schemas/metrics.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { mintToken, startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import { BODIES, createResources, type ResourceFinder } from "../../harness/server/resources.ts";
import {
  buildPath,
  forEachRoute,
  formatRoute,
  hasParameter,
  isGuarded,
  readRoutes,
  requestStatus,
  type Route,
} from "../../harness/server/routes.ts";
import { exchange } from "../../harness/tunnel/raw-http.ts";
import { waitForCaptures } from "../../harness/tunnel/visited-tunnel.ts";

interface Organization {
  owner: Person;
  tunnelId: string;
  findResource: ResourceFinder;
}

const VICTIM_REQUESTS = 1_000_000;

let api: TestApi;
let routes: Route[];
let victim: Organization;
let stranger: Organization;
/** Belongs to both organizations. */
let sharedUserId: string;
/** What the victim reads before the stranger does anything. */
let before: Record<string, unknown>;

beforeAll(async () => {
  api = await startApi();
  routes = (await readRoutes(api)).filter(isGuarded);
  [victim, stranger] = [await createOrganization(), await createOrganization()];
  await shareMember();
  await api.sql(
    `insert into traffic (org_id, grain, starts_at, tunnel_id, requests, bytes_in, bytes_out)
     select $1, grain, date_trunc('hour', now()), $2, $3, 0, 0 from unnest('{hour,minute}'::text[]) grain`,
    [victim.owner.orgId, victim.tunnelId, VICTIM_REQUESTS],
  );
  before = await readAll(victim);
});
afterAll(() => api.stop());

/** The member of the stranger's organization is one of the victim's too, where an invitation and a token are this member's. */
async function shareMember(): Promise<void> {
  const { "{user_id}": userId } = getValues(
    findRoute("PATCH /orgs/{id}/members/{user_id}"),
    stranger,
  );
  sharedUserId = userId!;
  const { orgId } = victim.owner;
  // Not the newest, after which the stranger's list of members would begin.
  await api.sql(
    "insert into memberships (user_id, org_id, role, created_at) values ($1, $2, 'admin', '2020-01-01')",
    [userId, orgId],
  );
  await mintToken(victim.owner);
  await victim.owner.post(`/orgs/${orgId}/invitations`, BODIES["POST /orgs/{id}/invitations"]);
  await api.sql("update tokens set created_by = $1 where org_id = $2", [userId, orgId]);
  await api.sql("update invitations set invited_by = $1 where org_id = $2", [userId, orgId]);
}

/** With a resource of every kind, and a captured request. */
async function createOrganization(): Promise<Organization> {
  const owner = await api.owner();
  const findResource = await createResources(api, owner);
  const tunnelId = findResource(findRoute("DELETE /tunnels/{id}"))["{id}"]!;
  const { body } = await owner.get<Tunnel[]>("/tunnels");
  const { subdomain } = body.find(({ id }) => id === tunnelId)!;
  const { port } = api.server;
  await exchange(port, `GET / HTTP/1.1\r\nHost: ${subdomain}.localhost:${port}\r\n\r\n`);
  await api.sql("update domains set verified_at = now() where org_id = $1", [owner.orgId]);
  const [capture] = await waitForCaptures(owner, { tunnel_id: tunnelId }, 1);
  const captured = { "{id}": capture!.id };
  return {
    owner,
    tunnelId,
    findResource: (route) =>
      route.path.startsWith("/inspector/{id}") ? captured : findResource(route),
  };
}

function findRoute(name: string): Route {
  return routes.find((route) => formatRoute(route) === name)!;
}

/** @returns the values of the path's parameters that name resources of the organization. */
function getValues(route: Route, { findResource }: Organization): Record<string, string> {
  if (!hasParameter(route)) return {};
  const found = Object.entries(findResource(route));
  return Object.fromEntries(found.filter(([name]) => route.path.includes(name)));
}

/** A body that is valid for the organization. */
function getBody(route: Route, { tunnelId }: Organization): unknown {
  const name = formatRoute(route);
  return name === "PUT /domains/{id}/bind" ? { tunnel_id: tunnelId } : BODIES[name];
}

const hasQuery = (route: Route, name: string) =>
  route.parameters?.some((parameter) => parameter.in === "query" && parameter.name === name);

/** These differ between two requests, or need a WebSocket. */
const UNSTABLE = /^\/(usage|metrics|auth\/sessions|inspector\/ws)/;

/** @returns what every route without effects answers, by the route. */
async function readAll({ owner, ...organization }: Organization): Promise<Record<string, unknown>> {
  const readable = routes.filter(
    ({ method, path }) => method === "GET" && !UNSTABLE.test(path) && path !== "/auth/cli/request",
  );
  const answers: Record<string, unknown> = {};
  await forEachRoute(readable, async (route) => {
    const path = buildPath(route, getValues(route, { owner, ...organization }));
    const { status, body } = await owner.get(path);
    answers[formatRoute(route)] = { status, body: withoutTimes(body) };
  });
  return answers;
}

async function countRequests({ owner }: Organization): Promise<number> {
  return (await owner.get<Metrics>("/metrics")).body.requests_last_24h;
}

/** A tunnel that an agent serves is seen again and again. */
function withoutTimes(body: unknown): unknown {
  return JSON.parse(JSON.stringify(body, (name, value) => (name === "lastSeenAt" ? null : value)));
}

test("a path with a resource of another organization or account answers 404 and changes nothing", async () => {
  await forEachRoute(routes.filter(hasParameter), async (route) => {
    const own = getValues(route, stranger);
    const foreign = getValues(route, victim);
    const body = getBody(route, stranger);
    const mixed = Object.keys(own).map((name) => ({ ...own, [name]: foreign[name]! }));
    for (const values of [...mixed, foreign]) {
      const status = await requestStatus(route, stranger.owner, values, body);
      expect([formatRoute(route), values, status]).toEqual([formatRoute(route), values, 404]);
    }
  });
  expect(await readAll(victim)).toEqual(before);
});

test("a query or a body with a resource of another organization answers 404 and changes nothing", async () => {
  const { tunnelId } = victim;
  const filtered = routes.filter((route) => hasQuery(route, "tunnel_id"));
  expect(filtered.map(formatRoute)).toEqual(
    expect.arrayContaining(["GET /inspector", "DELETE /inspector", "GET /metrics/breakdown"]),
  );
  const slug = getValues(findRoute("GET /projects/{slug}"), victim)["{slug}"];
  const bind = findRoute("PUT /domains/{id}/bind");
  const requests: [method: string, path: string, body?: object][] = [
    ...filtered
      .filter(({ path }) => path !== "/inspector/ws")
      .map(({ method, path }): [string, string] => [
        method,
        `${path}?tunnel_id=${tunnelId}${path === "/metrics/timeseries" ? "&metric=requests" : ""}`,
      ]),
    ["POST", "/tunnels", { localPort: 1, projectSlug: slug }],
    ["PUT", buildPath(bind, getValues(bind, stranger)), { tunnel_id: tunnelId }],
  ];
  for (const [method, path, body] of requests) {
    const json = { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const { status } = await stranger.owner.send(method, path, body ? json : {});
    expect([method, path, status]).toEqual([method, path, 404]);
  }
  expect(await readAll(victim)).toEqual(before);
});

test("no answer about an organization contains anything of another one", async () => {
  const identifiers = /\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{32}\b/g;
  const foreign = new Set(JSON.stringify(before).match(identifiers));
  foreign.delete(sharedUserId);
  expect(foreign).toContain(victim.tunnelId);
  expect(foreign).toContain(victim.owner.orgId);
  for (const [route, answer] of Object.entries(await readAll(stranger))) {
    const found = JSON.stringify(answer).match(identifiers) ?? [];
    expect([route, found.filter((id) => foreign.has(id))]).toEqual([route, []]);
  }
  expect(await countRequests(stranger)).toBeLessThan(VICTIM_REQUESTS);
});

/** Their positions are no ids of rows: of these lists, the path names the tunnel or the receiver. */
const WITHOUT_ROW_IDS = [
  "GET /inspector",
  "GET /inspector/har",
  "GET /webhook-receivers/{id}/events",
];

interface ListedRow {
  id?: string;
  user_id?: string;
}

test("a list after a row of another organization is refused like one after an unknown row", async () => {
  const paged = routes.filter(
    (route) => hasQuery(route, "after") && !WITHOUT_ROW_IDS.includes(formatRoute(route)),
  );
  await forEachRoute(paged, async (route) => {
    const { body } = await victim.owner.get<ListedRow[] | { tokens: ListedRow[] }>(
      buildPath(route, getValues(route, victim)),
    );
    const [row] = Array.isArray(body) ? body : body.tokens;
    const path = buildPath(route, getValues(route, stranger));
    const foreign = await stranger.owner.get(`${path}?after=${row!.id ?? row!.user_id}`);
    const unknown = await stranger.owner.get(`${path}?after=${crypto.randomUUID()}`);
    expect([formatRoute(route), foreign.status]).toEqual([formatRoute(route), 400]);
    expect([formatRoute(route), foreign.body]).toEqual([formatRoute(route), unknown.body]);
  });
  const { body } = await stranger.owner.get(`/orgs?resource_id=${victim.tunnelId}`);
  expect(body).toEqual([]);
});

/** Changes that this server refuses: it has no relay, allows no replays, and the budget of 0 has disconnected the agent. */
const REFUSED = [
  "PUT /private-networks/{id}/server",
  "POST /inspector/{id}/replay",
  "POST /private-networks/{id}/relay-ticket",
  "DELETE /connections/{agent_id}",
];
/** Requested after all others, because they need what these end. */
const LAST = ["DELETE /orgs/{id}", "DELETE /auth/sessions/{id}"];
const METHODS = ["PUT", "PATCH", "POST", "DELETE"];

test("what an organization does to all that it has changes nothing of another", async () => {
  const changes = routes
    .filter((route) => METHODS.includes(route.method) && hasParameter(route))
    .toSorted(compareChanges);
  const refused: string[] = [];
  for (const route of changes) {
    const body = getBody(route, stranger);
    const values = getValues(route, stranger);
    const status = await requestStatus(route, stranger.owner, values, body);
    if (status >= 300) refused.push(formatRoute(route));
  }
  expect(refused).toEqual(REFUSED);
  expect(await readAll(victim)).toEqual(before);
  expect(await countRequests(victim)).toBeGreaterThanOrEqual(VICTIM_REQUESTS);
});

/** Removes a part of a resource before the resource. */
function compareChanges(one: Route, other: Route): number {
  return (
    LAST.indexOf(formatRoute(one)) - LAST.indexOf(formatRoute(other)) ||
    METHODS.indexOf(one.method) - METHODS.indexOf(other.method) ||
    other.path.split("/").length - one.path.split("/").length ||
    one.path.localeCompare(other.path)
  );
}
