/** How many requests to the database the routes with `allowRead` send, and at whose expense. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { readdirSync, readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { parseApplicationName } from "../../../protocol/application-name.ts";
import type { MintedToken } from "../../../protocol/schemas/tokens.ts";
import type { OpenApiDocument } from "../../../workers/api/reference/openapi.ts";
import { newEmail, PASSWORD } from "../../harness/server/api.ts";
import { startHosted, type HostedService } from "../../harness/server/hosted.ts";
import { buildPath, readRoutes, type Route } from "../../harness/server/routes.ts";

const API_DIR = join(import.meta.dirname, "../../../workers/api");
const READING_ROUTE = /operationId: "(\w+)"(?:(?!operationId)[^])*?guard: allowRead/g;
const OPERATIONS = readdirSync(API_DIR, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .flatMap((name) => [...readFileSync(join(API_DIR, name), "utf8").matchAll(READING_ROUTE)])
  .map(([, operationId]) => operationId!);

/** Others have a query without required parameters, or none. */
const QUERIES: Record<string, string> = { getBreakdown: "?window=24h" };
/** Those that read more after the first request. */
const REQUESTS: Record<string, number> = { getBreakdown: 2 };
const ADDRESS = "192.0.2.1";

interface Account {
  bearer: string;
  orgId: string;
}

let service: HostedService;
let routes: Map<string, Route>;
let owner: Account;
let stranger: Account;

/** The callers for whom the Worker has sent requests to the database, in their order. */
let callers: (string | undefined)[] = [];

/** The gateway is in this process. */
function record(message: unknown): void {
  const { request } = message as { request: IncomingMessage };
  if (request.url !== "/sql") return;
  const url = new URL(String(request.headers["neon-connection-string"]));
  callers.push(parseApplicationName(url.searchParams.get("application_name") ?? ""));
}

beforeAll(async () => {
  service = await startHosted({ settings: {} });
  owner = await signUp();
  stranger = await signUp();
  const anonymous = { get: async (path: string) => ({ body: (await send("", path)).body }) };
  const documented = await readRoutes({ anonymous } as unknown as Parameters<typeof readRoutes>[0]);
  routes = new Map(documented.map((route) => [route.operationId, route]));
  subscribe("http.server.request.start", record);
});
afterAll(async () => {
  unsubscribe("http.server.request.start", record);
  await service?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  callers = [];
});

async function send(bearer: string, path: string, method = "GET", body?: object) {
  const reply = await fetch(service.url + path, {
    method,
    headers: {
      authorization: `Bearer ${bearer}`,
      "cf-connecting-ip": ADDRESS,
      ...(body && { "content-type": "application/json" }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await reply.text();
  return { status: reply.status, body: reply.ok ? (JSON.parse(text) as OpenApiDocument) : null };
}

async function signUp(): Promise<Account> {
  const email = newEmail();
  await send("", "/auth/signup", "POST", { email, password: PASSWORD });
  await service.sql("update users set email_verified_at = now() where email = $1", [email]);
  const login = await send("", "/auth/login", "POST", { email, password: PASSWORD });
  const { access_token: bearer } = login.body as unknown as { access_token: string };
  const [org] = await service.sql<{ id: string }>(
    "select org_id as id from memberships join users on users.id = user_id where email = $1",
    [email],
  );
  return { bearer, orgId: org!.id };
}

function call(operationId: string, bearer: string, orgId: string) {
  const route = routes.get(operationId)!;
  const path = buildPath(route, route.path.startsWith("/orgs/") ? { "{id}": orgId } : {});
  return send(bearer, path + (QUERIES[operationId] ?? ""), route.method);
}

test("the routes with allowRead are found", () => {
  expect(OPERATIONS).toContain("listTunnels");
  expect(OPERATIONS).toContain("replayCapturedRequest");
  expect(OPERATIONS).toContain("listMembers");
});

test.each(OPERATIONS)("%s reads rights and rows in one request", async (operationId) => {
  // A request that does not exist has nothing to read or to replay.
  expect([200, 404]).toContain((await call(operationId, owner.bearer, owner.orgId)).status);
  expect(callers).toEqual(Array(REQUESTS[operationId] ?? 1).fill(owner.orgId));
});

describe("at the expense of an organization", () => {
  test("a revoked token sends one request at most", async () => {
    const minted = await send(owner.bearer, "/tokens", "POST", {
      name: "stolen",
      agentId: "agent",
      tunnelQuota: 1,
      ttlSeconds: 3600,
    });
    const { wireBytes, nonce } = minted.body as unknown as MintedToken;
    expect((await send(wireBytes, "/tunnels")).status).toBe(200);
    expect((await send(owner.bearer, `/tokens/${nonce}`, "DELETE")).status).toBe(200);

    callers = [];
    for (let time = 0; time < 3; time++)
      expect((await send(wireBytes, "/tunnels")).status).toBe(401);
    expect(callers).toEqual([owner.orgId, ADDRESS, ADDRESS]);
  });

  test("a member without the permission reads once at most, until the role changes", async () => {
    const setRole = (role: string) =>
      service.sql("update memberships set role = $1 where org_id = $2", [role, stranger.orgId]);
    const replay = () => call("replayCapturedRequest", stranger.bearer, stranger.orgId);
    await setRole("viewer");
    expect((await replay()).status).toBe(403);
    expect((await replay()).status).toBe(403);
    expect(callers).toEqual([stranger.orgId, ADDRESS]);

    callers = [];
    await setRole("owner");
    expect((await replay()).status).toBe(404);
    expect((await replay()).status).toBe(404);
    expect(callers).toEqual([ADDRESS, stranger.orgId, stranger.orgId]);
  });

  test.each(["listMembers", "listInvitations"])(
    "%s: a stranger sends none",
    async (operationId) => {
      expect((await call(operationId, stranger.bearer, owner.orgId)).status).toBe(404);
      expect(callers).toEqual([ADDRESS, ADDRESS]);
    },
  );
});
