/** The OpenAPI document: it lints without warnings, is complete, and clients can be generated from it. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import openapiTS from "openapi-typescript";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { OpenApiDocument } from "../../../workers/api/reference/openapi.ts";
import { startApi, type TestApi } from "../../harness/server/api.ts";
import { ROOT } from "../../../self-host/build/build.ts";

let api: TestApi;
let document: OpenApiDocument;
beforeAll(async () => {
  api = await startApi();
  ({ body: document } = await api.anonymous.get<OpenApiDocument>("/openapi.json"));
});
afterAll(() => api.stop());
test("describes every operation, parameter and field", () => {
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  const ids = operations.map(({ operationId }) => operationId);
  expect(new Set(ids).size).toBe(ids.length);
  const tags = new Set(document.tags.map(({ name }) => name));
  for (const {
    operationId,
    summary,
    description,
    tags: [tag],
    parameters = [],
  } of operations) {
    expect([operationId, tags.has(tag!)]).toEqual([operationId, true]);
    expect([operationId, description]).not.toEqual([operationId, `${summary}.`]);
    for (const text of [description, ...parameters.map((parameter) => parameter.description)]) {
      expect([operationId, text]).toEqual([operationId, expect.stringMatching(/\S/)]);
    }
  }
  const undescribed = Object.entries(document.components.schemas).flatMap(
    ([component, { properties = {} }]) =>
      Object.keys(properties)
        .filter((name) => !properties[name]!.description)
        .map((name) => `${component}.${name}`),
  );
  // Add them to workers/api/reference/fields.ts, or describe them in their schema.
  expect(undescribed).toEqual([]);
});

test.each([
  ["/orgs", "get", "`account:self`, which every role has."],
  ["/billing", "get", "`billing:manage`, which only the role `owner` has."],
  ["/tunnels", "post", "`tunnels:write`, which the roles `member`, `admin` and `owner` have."],
] as const)("says who may call %s: %s", (path, method, holders) => {
  expect(document.paths[path]![method]!.description).toContain(`the permission ${holders}`);
});

test.each([
  ["Error", ["fields", "path"], "the field or the parameter"],
  ["NetworkRelay", ["state"], "relay"],
  ["CaptureSummary", ["state"], "has ended"],
  ["SetBasicAuth", ["user"], "another name for `username`"],
  ["MintedVisitorToken", ["token"], "jwt"],
  ["MintedVisitorToken", ["expiresAt"], "token"],
  ["MintedToken", ["projectSlug"], "only project"],
  ["Billing", ["limits", "pro"], "the plan `pro`"],
])("describes what a field means in %s: %j", (component, path, text) => {
  const property = path.reduce(
    (schema, name) => (schema.items ?? schema).properties![name]!,
    document.components.schemas[component]!,
  );
  expect(property.description?.toLowerCase()).toContain(text);
});

test.each([
  ["/inspector", "path", "A part of the path."],
  ["/events", "ip_address", "The address from which it was done, as the events have it."],
  ["/auth/oauth/idp_a/callback", "code", "The provider's authorization code."],
])("describes a parameter of GET %s as its schema does: %s", (path, name, description) => {
  const { parameters = [] } = document.paths[path]!.get!;
  expect(parameters.find((parameter) => parameter.name === name)).toMatchObject({ description });
});

test("names the schema of every object in a request or a response", () => {
  for (const { operationId, requestBody } of Object.values(document.paths).flatMap((path) =>
    Object.values(path),
  )) {
    const schema = requestBody?.content["application/json"]?.schema;
    if (schema) expect([operationId, schema]).toEqual([operationId, { $ref: expect.any(String) }]);
  }
});

test("names the default and the limits of a number in a query", () => {
  const { schema } = document.paths["/inspector"]!.get!.parameters!.find(
    ({ name }) => name === "limit",
  )!;
  expect(schema).toEqual({ type: "integer", minimum: 1, maximum: 500, default: 100 });
});

test("has patterns without flags, which match under every dialect", () => {
  const patterns = [...JSON.stringify(document).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)].map(
    ([, text]) => JSON.parse(text!) as string,
  );
  expect(patterns.length).toBeGreaterThan(10);
  for (const pattern of patterns) {
    expect(pattern).not.toMatch(/\\p\{|\$\/[a-z]+$/);
    for (const flags of ["", "u"]) expect(() => new RegExp(pattern, flags)).not.toThrow();
  }
});

test("names the credentials that each operation accepts", () => {
  const getCredentials = (id: string) =>
    Object.values(document.paths)
      .flatMap((path) => Object.values(path))
      .find(({ operationId }) => operationId === id)!
      .security.flatMap((scheme) => Object.keys(scheme));
  expect(getCredentials("logIn")).toEqual([]);
  expect(getCredentials("createTunnel")).toEqual(["accessToken"]);
  expect(getCredentials("listPrivateNetworks")).toEqual(["accessToken", "capabilityToken"]);
  expect(getCredentials("mintProjectToken")).toEqual(["accessToken", "masterKey"]);
  expect(getCredentials("refreshSession")).toEqual(["refreshCookie"]);
  expect(getCredentials("watchCapturedRequests")).toEqual([
    "accessTokenSubprotocol",
    "accessToken",
    "capabilityToken",
  ]);
  expect(document.components.securitySchemes.accessTokenSubprotocol).toMatchObject({
    in: "header",
    name: "Sec-WebSocket-Protocol",
  });
});

test("becomes a typed client that compiles and works", async () => {
  const owner = await api.owner();
  await mkdir(join(ROOT, "dist"), { recursive: true });
  // Inside of the repository, so that the client finds its package.
  const dir = await mkdtemp(join(ROOT, "dist/client-"));
  try {
    await writeFile(join(dir, "schema.ts"), await openapiTS(document as never));
    await writeFile(join(dir, "client.ts"), CLIENT);
    await promisify(execFile)(
      join(ROOT, "node_modules/.bin/tsc"),
      [...COMPILER_OPTIONS, "client.ts"],
      { cwd: dir },
    );
    const client = (await import(pathToFileURL(join(dir, "client.ts")).href)) as {
      createAndList(url: string, token: string): Promise<unknown>;
    };
    expect(await client.createAndList(api.server.url, owner.accessToken)).toEqual({
      created: "inactive",
      listed: 1,
      error: "invalid_request",
    });
  } finally {
    await rm(dir, { recursive: true });
  }
});

const COMPILER_OPTIONS =
  "--ignoreConfig --checkers 1 --noEmit --strict --skipLibCheck --allowImportingTsExtensions --module esnext --moduleResolution bundler --target es2024 --lib es2024,dom".split(
    " ",
  );

/** A program of a user. */
const CLIENT = `
import createClient from "openapi-fetch";
import type { paths } from "./schema.ts";

export async function createAndList(baseUrl: string, token: string) {
  const client = createClient<paths>({ baseUrl, headers: { authorization: \`Bearer \${token}\` } });
  const created = await client.POST("/tunnels", { body: { localPort: 3000, protocol: "http" } });
  const listed = await client.GET("/tunnels", { params: { query: { limit: 10 } } });
  const refused = await client.POST("/tunnels", { body: { localPort: 0, protocol: "http" } });
  const status: "inactive" | "active" | "offline" | "expired" | undefined = created.data?.status;
  return { created: status, listed: listed.data?.length, error: refused.error?.error };
}
`;

test("lints without a problem", async () => {
  const config = await createConfig({
    extends: ["recommended-strict"],
    rules: {
      "operation-description": "error",
      "operation-tag-defined": "error",
      "parameter-description": "error",
      // A WebSocket is answered with 101, and a browser is redirected with 302.
      "operation-2xx-response": "off",
      // It is the server that returned the document.
      "no-server-example.com": "off",
    },
  });
  const problems = await lintFromString({ source: JSON.stringify(document), config });
  expect(problems.map(({ message, location: [at] }) => `${at?.pointer}: ${message}`)).toEqual([]);
});
