/** No request causes an internal error, however invalid it is. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  createCaller,
  mintToken,
  PASSWORD,
  startApi,
  type Caller,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import {
  generateExamples,
  HOSTILE_STRINGS,
  generateInvalidBodies,
  type Schema,
} from "../../harness/server/invalid-requests.ts";
import { readRoutes, type Route } from "../../harness/server/routes.ts";

interface DescribedRoute extends Route {
  parameters?: { name: string; in: string; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
}

let api: TestApi;
let owner: Person;
let routes: DescribedRoute[];

beforeAll(async () => {
  // These providers are unreachable, but their routes exist.
  api = await startApi({
    env: {
      IDP_A_ISSUER: "http://127.0.0.1:9",
      IDP_A_CLIENT_ID: "a",
      IDP_A_CLIENT_SECRET: "secret",
      IDP_B_AUTHORIZE_URL: "http://127.0.0.1:9/authorize",
      IDP_B_TOKEN_URL: "http://127.0.0.1:9/token",
      IDP_B_API_URL: "http://127.0.0.1:9",
      IDP_B_CLIENT_ID: "b",
      IDP_B_CLIENT_SECRET: "secret",
    },
  });
  owner = await api.owner();
  routes = (await readRoutes(api)) as DescribedRoute[];
});
afterAll(() => api.stop());

const json = { "content-type": "application/json" };

/** Creates resources. @returns path parameters that name them. */
async function createPathValues({ path }: Route, person: Person): Promise<Record<string, string>> {
  const { body: tunnel } = await person.post<Tunnel>("/tunnels", { localPort: 1 });
  const { nonce } = await mintToken(person);
  const id = path.startsWith("/orgs/") ? person.orgId : tunnel.id;
  return { id, nonce, user_id: person.userId, slug: "default" };
}

function buildAddress(route: DescribedRoute, values: Record<string, string>): string {
  const query = new URLSearchParams();
  let path = route.path;
  for (const { name, in: place, schema } of route.parameters ?? []) {
    const text = values[name] ?? String(generateExamples(schema, name)[0]);
    if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(text));
    else query.append(name, text);
  }
  return `${path}?${query.toString()}`;
}

/** Sends the requests in batches. @returns those that caused an internal error. */
async function findFailures(by: Caller, method: string, all: { address: string; body?: string }[]) {
  const failures: string[] = [];
  const BATCH_SIZE = 20;
  for (let at = 0; at < all.length; at += BATCH_SIZE) {
    const batch = all.slice(at, at + BATCH_SIZE).map(async ({ address, body }) => {
      const init = body === undefined ? {} : { headers: json, body };
      const { status } = await by.send(method, address, init);
      if (status === 500) failures.push(`${method} ${address} ${body ?? ""}`.slice(0, 500));
    });
    await Promise.all(batch);
  }
  return failures;
}

test("no body causes an internal error", { timeout: 600_000 }, async () => {
  const failures = [];
  for (const route of routes) {
    const schema = route.requestBody?.content["application/json"]?.schema;
    if (!schema) continue;
    // A person for each route: the resources that one route creates do not count for the limits of the next.
    const person = await api.owner();
    const address = buildAddress(route, await createPathValues(route, person));
    const all = generateInvalidBodies(schema).map((body) => ({ address, body }));
    failures.push(...(await findFailures(person, route.method, all)));
  }
  expect(failures).toEqual([]);
});

test("no parameter causes an internal error", { timeout: 600_000 }, async () => {
  const failures = [];
  for (const route of routes) {
    const valid = await createPathValues(route, owner);
    const all = (route.parameters ?? []).flatMap(({ name }) =>
      HOSTILE_STRINGS.map((text) => text.toWellFormed().slice(0, 4_000)).map((text) => ({
        address: buildAddress(route, { ...valid, [name]: text }),
      })),
    );
    failures.push(...(await findFailures(owner, route.method, all)));
  }
  expect(failures).toEqual([]);
});

/** A header value is sent as Latin-1: this one arrives as the UTF-8 bytes of the text. */
const toHeaderValue = (text: string) => Buffer.from(text).toString("latin1");

test.each([
  ["user-agent", "of characters with two UTF-16 units each", toHeaderValue(`x${"😀".repeat(150)}`)],
  ["user-agent", "of bytes that are not UTF-8", "\xff\xfe\x80"],
  [
    "cookie",
    "with invalid escapes",
    "qnt_refresh=%E0%A4%A; underpass-oauth=%00; underpass-mfa=v1.a.b.c",
  ],
  [
    "cookie",
    "of an unknown session",
    "qnt_refresh=00000000-0000-4000-8000-000000000000.x.y; =; ;;",
  ],
  ["origin", "of an opaque origin", "null"],
  ["accept", "without a valid type", toHeaderValue("text/html;q=😀")],
  ["authorization", "of many dots", `Bearer ${"a.".repeat(5_000)}`],
  ["authorization", "of characters outside of base64", toHeaderValue("Bearer 😀.😀.😀")],
  ["content-type", "of another charset", "application/json; charset=utf-7"],
  ["x-forwarded-for", "without valid addresses", "1.2.3.4, ::, [::1, %00"],
])("no header causes an internal error: %s %s", async (name, _description, value) => {
  const authorization = `Bearer ${owner.accessToken}`;
  const caller = createCaller(api.server, { ...json, authorization, [name]: value });
  const login = JSON.stringify({ email: owner.email, password: PASSWORD });
  for (const { method, path } of routes.filter((route) => !route.path.includes("{"))) {
    const body = path === "/auth/login" ? { body: login } : {};
    const { status } = await caller.send(method, path, body);
    expect([method, path, status]).not.toEqual([method, path, 500]);
  }
});

test("no error was logged", () => {
  const errors = api.server.output
    .split("\n")
    .filter((line) => line.includes('"level":"error"') && !line.includes("provider_failed"));
  expect(errors).toEqual([]);
});
