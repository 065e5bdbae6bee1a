/** Every route refuses invalid requests with a message that a person understands, and never with an internal error. */
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import { findErrorProblems, MessageCollection } from "../../harness/formats/messages.ts";
import {
  createCaller,
  PASSWORD,
  startApi,
  type Caller,
  type Person,
  type Reply,
  type TestApi,
} from "../../harness/server/api.ts";
import {
  duplicateKeys,
  fillUniqueNames,
  generateExamples,
  HOSTILE_BODIES,
  HOSTILE_PARAMETERS,
  listParts,
  replaceParts,
  type Part,
} from "../../harness/server/invalid-requests.ts";
import { createResources, type ResourceFinder } from "../../harness/server/resources.ts";
import type { Schema } from "../../../workers/api/reference/openapi.ts";
import { formatRoute, readRoutes, type Route } from "../../harness/server/routes.ts";

type ErrorReply = Reply<Partial<ErrorBody> | null>;

let api: TestApi;
let owner: Person;
let routes: Route[];
let findResource: ResourceFinder;
/** Requests whose response was an internal error or no clear refusal. */
let problems: string[];
const messages = new MessageCollection();

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
  routes = await readRoutes(api);
  findResource = await createResources(api, owner);
});
afterAll(() => api.stop());
afterAll(() => messages.write());
beforeEach(() => {
  problems = [];
});

const json = { "content-type": "application/json" };

async function send(by: Caller, method: string, address: string, body?: string) {
  const init = body === undefined ? {} : { headers: json, body };
  const reply: ErrorReply = await by.send(method, address, init);
  const isJson = reply.headers.get("content-type")?.startsWith("application/json");
  const found = reply.status === 500 ? ["is an internal error"] : [];
  if (reply.status >= 400 && isJson) found.push(...findErrorProblems(reply.body, messages));
  for (const problem of found)
    problems.push(`${method} ${address} ${body ?? ""}`.slice(0, 500) + ` ${problem}`);
  return reply;
}

/** The fields that the API names as invalid. */
const getInvalidFields = ({ body }: ErrorReply) => body?.fields?.map(({ path }) => path) ?? [];

const isValid = (reply: ErrorReply) => getInvalidFields(reply).length === 0;

/** Fields with rules that a JSON Schema can't express. Every other refused body violates the document too. */
const UNDOCUMENTED_RULES = [
  // The number of bytes, and common passwords.
  "POST /auth/signup: password",
  // The length with the suffix of the project.
  "POST /tunnels: subdomain",
  // It must exist.
  "PUT /private-networks/{id}/server: relay_id",
];

/** Unpaired surrogates are in no JSON text that is exchanged between systems (RFC 8259 §8.2). */
const isWellFormed = (text: string) => !/\\ud[89a-f]/.test(text);

const validator = addFormats(new Ajv2020({ strict: false, logger: false }));

/** The same refusal: both requests have come equally far. */
const isSame = (one: ErrorReply, other: ErrorReply) =>
  one.status === other.status && one.body?.message === other.body?.message;

/**
 * Replaces every part by each of its values. The first request for a value replaces all parts at once. Parts that the API
 * names as invalid are done; the others are replaced again without them. If that is not answered like the unchanged
 * example, each of them is replaced alone.
 */
async function replaceEach(
  parts: Pick<Part, "path" | "values">[],
  request: (textByPath: ReadonlyMap<string, string>) => Promise<ErrorReply>,
): Promise<void> {
  const unchanged = await request(new Map());
  const rounds = Math.max(0, ...parts.map(({ values }) => values.length));
  const runs = Array.from({ length: rounds }, async (_, round) => {
    let left = new Map(
      parts.flatMap(({ path, values }) => (round in values ? [[path, values[round]!]] : [])),
    );
    while (left.size > 0) {
      const reply = await request(left);
      const invalid = getInvalidFields(reply);
      const rest = new Map([...left].filter(([path]) => !invalid.includes(path)));
      if (rest.size === left.size) {
        const isDone = reply.status < 300 || (isValid(unchanged) && isSame(reply, unchanged));
        if (isDone || left.size === 1) return;
        for (const one of left) await request(new Map([one]));
        return;
      }
      left = rest;
    }
  });
  await Promise.all(runs);
}

// ── Bodies ──

/** @returns examples that together contain every field, and are valid: some optional fields exclude each other. */
async function findValidBodies(
  schema: Schema,
  accepts: (example: unknown) => Promise<boolean>,
): Promise<Record<string, unknown>[]> {
  const found: Record<string, unknown>[] = [];
  for (const whole of generateExamples(schema) as Record<string, unknown>[]) {
    const pick = (names: string[]) =>
      Object.fromEntries(names.map((name) => [name, whole[name]] as const));
    const required = schema.required ?? [];
    const optional = Object.keys(whole).filter((name) => !required.includes(name));
    let example = pick(required);
    for (const name of optional) {
      const larger = { ...example, [name]: whole[name] };
      if ((await accepts(larger)) || !(await accepts(example))) example = larger;
      else found.push(pick([...required, name]));
    }
    found.push(example);
  }
  return found;
}

test("no body causes an internal error or an unclear refusal", { timeout: 600_000 }, async () => {
  const invalidExamples: string[] = [];
  const undocumentedRules = new Set<string>();
  for (const route of routes) {
    const schema = route.requestBody?.content["application/json"]?.schema;
    if (!schema) continue;
    const address = buildAddress(route);
    const isAllowedByDocument = validator.compile(schema);
    const request = async (text: string) => {
      const body = fillUniqueNames(text);
      const reply = await send(owner, route.method, address, body);
      const invalid = reply.status === 400 ? getInvalidFields(reply) : [];
      if (invalid.length > 0 && isWellFormed(body) && isAllowedByDocument(JSON.parse(body)))
        undocumentedRules.add(`${formatRoute(route)}: ${invalid.join(", ")}`);
      return reply;
    };
    await Promise.all(HOSTILE_BODIES.map(request));
    const accepts = async (body: unknown) => isValid(await request(JSON.stringify(body)));
    /** Without the numbers of items. Examples for several alternatives share some parts. */
    const tested = new Set<string>();
    for (const example of await findValidBodies(schema, accepts)) {
      if (!(await accepts(example)))
        invalidExamples.push(`${formatRoute(route)}: ${Object.keys(example).at(-1)}`);
      await request(duplicateKeys(example));
      const replace = (textByPath: ReadonlyMap<string, string>) =>
        request(replaceParts(example, textByPath));
      const parts = listParts(example);
      await replaceEach(
        parts.filter(({ concernsOthers }) => !concernsOthers),
        replace,
      );
      for (const part of parts.filter(({ concernsOthers }) => concernsOthers)) {
        const kind = part.path.replaceAll(/\d+/g, "#");
        if (tested.has(kind)) continue;
        tested.add(kind);
        await replaceEach([part], replace);
      }
    }
  }
  // These need a relay. Every other part was invalid in a request that was valid otherwise.
  expect(invalidExamples.sort()).toEqual([
    "POST /tunnels: publicPort",
    "POST /tunnels: relayId",
    "PUT /private-networks/{id}/server: relay_id",
  ]);
  expect([...undocumentedRules].sort()).toEqual(UNDOCUMENTED_RULES);
  expect(problems).toEqual([]);
});

// ── Parameters ──

/** The address of a route with valid parameters, except for those that are given. */
function buildAddress(route: Route, replaced: Record<string, string> = {}): string {
  const resource = route.path.includes("{") ? findResource(route) : {};
  const query = new URLSearchParams();
  let path = route.path;
  for (const { name, in: place, required, schema } of route.parameters ?? []) {
    const valid = resource[`{${name}}`] ?? String(generateExamples(schema, name)[0]);
    const text = replaced[name] ?? valid;
    if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(text));
    else if (required === true || name in replaced) query.append(name, text);
  }
  return `${path}?${query.toString()}`;
}

test(
  "no parameter of a path causes an internal error or an unclear refusal",
  { timeout: 600_000 },
  async () => {
    /** By schema and by the refusal of an invalid value: the values that are not refused in the same way. */
    const otherValues = new Map<string, string[]>();
    for (const route of routes) {
      for (const { name, in: place, schema } of route.parameters ?? []) {
        if (place !== "path") continue;
        const request = (text: string) =>
          send(owner, route.method, buildAddress(route, { [name]: text }));
        const refusal = await request("\0");
        // Routes with the same schema and the same refusal share the code that refuses.
        const key = `${JSON.stringify(schema)} ${refusal.body?.message}`;
        const values = otherValues.get(key) ?? HOSTILE_PARAMETERS;
        const replies = await Promise.all(values.map(request));
        otherValues.set(
          key,
          values.filter((_, at) => !isSame(replies[at]!, refusal)),
        );
      }
    }
    expect(problems).toEqual([]);
  },
);

test(
  "no parameter of a query causes an internal error or an unclear refusal",
  { timeout: 600_000 },
  async () => {
    for (const route of routes) {
      const parts = (route.parameters ?? [])
        .filter(({ in: place }) => place === "query")
        .map(({ name }) => ({ path: name, values: HOSTILE_PARAMETERS }));
      if (parts.length === 0) continue;
      await replaceEach(parts, (textByName) =>
        send(owner, route.method, buildAddress(route, Object.fromEntries(textByName))),
      );
    }
    expect(problems).toEqual([]);
  },
);

// ── Headers ──

/** A header value is sent as Latin-1: this one arrives as the UTF-8 bytes of the text. */
const toHeaderValue = (text: string) => Buffer.from(text).toString("latin1");

test.each<[string, Record<string, string>]>([
  [
    "a user agent of characters with two UTF-16 units each, an invalid type and invalid addresses",
    {
      "user-agent": toHeaderValue(`x${"😀".repeat(150)}`),
      accept: toHeaderValue("text/html;q=😀"),
      "x-forwarded-for": "1.2.3.4, ::, [::1, %00",
    },
  ],
  [
    "a user agent of bytes that are not UTF-8, and cookies with invalid escapes",
    {
      "user-agent": "\xff\xfe\x80",
      cookie: "qnt_refresh=%E0%A4%A; underpass-oauth=%00; underpass-mfa=v1.a.b.c",
    },
  ],
  [
    "a cookie of an unknown session",
    { cookie: "qnt_refresh=00000000-0000-4000-8000-000000000000.x.y; =; ;;" },
  ],
  ["an opaque origin", { origin: "null" }],
  ["credentials of many dots", { authorization: `Bearer ${"a.".repeat(5_000)}` }],
  ["credentials outside of base64", { authorization: toHeaderValue("Bearer 😀.😀.😀") }],
  ["another charset", { "content-type": "application/json; charset=utf-7" }],
])("no header causes an internal error: %s", async (_description, headers) => {
  const { accessToken } = await api.logIn(owner.email, PASSWORD);
  const authorization = `Bearer ${accessToken}`;
  const caller = createCaller(api.server, { ...json, authorization, ...headers });
  const login = JSON.stringify({ email: owner.email, password: PASSWORD });
  const request = ({ method, path }: Route) =>
    send(caller, method, path, path === "/auth/login" ? login : undefined);
  const isLogout = ({ path }: Route) => path === "/auth/logout";
  const plain = routes.filter(({ path }) => !path.includes("{"));
  await Promise.all(plain.filter((route) => !isLogout(route)).map(request));
  await Promise.all(plain.filter(isLogout).map(request));
  expect(problems).toEqual([]);
});

test("no error was logged", () => {
  const errors = api.server.output
    .split("\n")
    .filter((line) => line.includes('"level":"error"') && !line.includes("provider_failed"));
  expect(errors).toEqual([]);
});
