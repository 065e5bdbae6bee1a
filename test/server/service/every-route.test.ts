/** Rules that every route follows. The routes are those of the OpenAPI document, so that no new one is forgotten. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { createCaller, startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import {
  buildPath,
  forEachRoute,
  hasParameter,
  isGuarded,
  formatRoute,
  readRoutes,
  requestStatus,
  type Route,
} from "../../harness/server/routes.ts";
import { createNetwork, newKey } from "../../harness/server/private-networks.ts";
import { BODIES, createResources, newDomain } from "../../harness/server/resources.ts";

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
    expect([formatRoute(route), ...outcomes]).toEqual([
      formatRoute(route),
      `400 ${BAD_REQUEST_CODES[route.operationId] ?? "invalid_request"}`,
      `400 ${findNotAnObjectCode(route)}`,
      `400 ${findNotAnObjectCode(route)}`,
      "415 unsupported_media_type",
      "415 unsupported_media_type",
      "415 unsupported_media_type",
      "413 payload_too_large",
    ]);
  });
});

/** Routes with another code than `invalid_request` for every invalid body. */
const BAD_REQUEST_CODES: Record<string, string> = {
  verifyEmail: "invalid_code",
  setTokenBudget: "invalid_budget",
  setOrganizationBudget: "invalid_budget",
};

/** The code for a body in JSON that is no object. */
function findNotAnObjectCode({ operationId }: Route): string {
  if (/TrafficPolicy$/.test(operationId)) return "bad_policy";
  return BAD_REQUEST_CODES[operationId] ?? "invalid_request";
}

/** In such a path the guard checks the role in the organization of the id; in others the id names another resource. */
function ownOrganization({ path }: Route, { orgId }: Person): Record<string, string> {
  return path.startsWith("/orgs/") ? { "{id}": orgId } : {};
}

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
