/** Routes with `allowRead`, behind a database that answers as the test says. */
import { OpenAPIHono } from "@hono/zod-openapi";
import { exportJWK, generateKeyPair } from "jose";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { allowRead, readAsCaller } from "../../workers/api/guard.ts";
import { route, type ApiContext, type ApiEnv } from "../../workers/api/route.ts";
import { getConfig, type Config } from "../../workers/config/config.ts";
import type { Env } from "../../workers/env.ts";
import { describeError } from "../../workers/errors.ts";
import { signAccessToken } from "../../workers/identity/tokens/access-tokens.ts";
import { createDatabase } from "../../workers/jobs/outbox.ts";
import { listTunnels } from "../../workers/store/tunnels/tunnels.ts";

const FAILURE = { message: "stack depth limit exceeded", code: "54001", severity: "ERROR" };

let config: Config;
let bearer: string;
/** The requests that reached the database. */
let requests = 0;
/** What the handlers have thrown. */
let thrown: unknown;

const gateway = {
  fetch() {
    requests += 1;
    return Promise.resolve(Response.json(FAILURE, { status: 400 }));
  },
};
const env = {
  DATABASE_URL: "postgresql://underpass:secret@gateway.internal/underpass",
  DATABASE_GATEWAY: gateway,
} as unknown as Env;

beforeAll(async () => {
  const { privateKey } = await generateKeyPair("ES256", { extractable: true });
  config = getConfig({
    JWT_PRIVATE_KEY: JSON.stringify({ ...(await exportJWK(privateKey)), kid: "a", alg: "ES256" }),
    TOKEN_SIGNING_KEY: "unused",
    ENCRYPTION_KEY: btoa("k".repeat(32)),
  });
  const [sub, sid, org] = Array.from({ length: 3 }, () => crypto.randomUUID());
  bearer = await signAccessToken(config, { sub: sub!, sid: sid!, org: org!, role: "owner" });
});
beforeEach(() => {
  requests = 0;
  thrown = undefined;
});

function call(handler: (c: ApiContext) => Promise<Response>): Promise<Response> {
  const app = new OpenAPIHono<ApiEnv>();
  app.use(async (c, next) => {
    c.set("config", config);
    c.set("db", createDatabase(c.env));
    await next();
  });
  app.onError((error, c) => {
    thrown = error;
    return c.text("an error", 500);
  });
  const definition = route({
    operationId: "listThings",
    method: "get",
    path: "/things",
    summary: "List things",
    guard: allowRead("tunnels:read"),
    responses: { 200: { description: "Things." } },
  });
  app.openapi(definition, handler as never);
  const request = new Request("http://api.test/things", {
    headers: { authorization: `Bearer ${bearer}` },
  });
  return Promise.resolve(app.fetch(request, env));
}

test("a handler that does not read as the caller is answered with an error instead of its rows", async () => {
  const response = await call((c) => Promise.resolve(c.json(["a row"])));
  expect(response.status).toBe(500);
  expect(await response.text()).toBe("an error");
  expect(String(thrown)).toContain("the caller's rights were not checked");
  expect(requests).toBe(0);
});

test("the error of a failed request names the functions that waited for the rows", async () => {
  const response = await call(async function listThings(c) {
    return c.json(await readAsCaller(c, (db, orgId) => listTunnels(db, orgId, { limit: 1 })));
  });
  expect(response.status).toBe(500);
  expect(requests).toBe(1);
  expect(describeError(thrown)).toMatch(
    /page\.ts[^]*guard\.ts[^]*listThings[^]*stack depth limit exceeded/,
  );
});
