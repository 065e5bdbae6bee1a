/** Gates that an agent sets when it connects: no visitor reaches the local server without them. */
import { once } from "node:events";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { expose, type ExposeOptions } from "../../../agent/expose.ts";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import type { AuditEvent } from "../../../protocol/schemas/organizations/audit.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { mintToken, startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import { runAgent } from "../../harness/tunnel/agent.ts";
import { startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import { basicAuthorization, findErrorCode } from "../../harness/tunnel/owned-tunnel.ts";
import { exchange } from "../../harness/tunnel/raw-http.ts";
import { getCommandLine } from "../../../self-host/processes/processes.ts";

const PASSWORD = "open sesame 1";
const RIGHT = basicAuthorization("ann", PASSWORD);

let api: TestApi;
let owner: Person;
let origin: RawOrigin;
let token: Buffer;

beforeAll(async () => {
  [api, origin] = await Promise.all([startApi(), startRawOrigin()]);
  owner = await api.owner();
  token = Buffer.from((await mintToken(owner, { tunnelQuota: 50 })).wireBytes, "base64");
});
afterAll(async () => {
  await api.stop();
  await origin.stop();
});
beforeEach(() => {
  origin.requests.length = 0;
});

const start = (options: ExposeOptions) =>
  expose({ port: origin.port, server: api.server.url, token, ...options });

async function visit(
  subdomain: string,
  lines: Record<string, string> = {},
  path = "/",
): Promise<string> {
  const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`);
  return findErrorCode(
    await exchange(
      api.server.port,
      `GET ${path} HTTP/1.1\r\nHost: ${subdomain}.localhost\r\n${head.join("")}\r\n`,
    ),
  );
}

async function findTunnel(subdomain: string): Promise<Tunnel> {
  const { body } = await owner.get<Tunnel[]>("/tunnels");
  return body.find((tunnel) => tunnel.subdomain === subdomain)!;
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const PASSWORD_GATE = encode({ basicAuth: { username: "ann", password: PASSWORD } });

function connectWithGates(gates: string, query: Record<string, string | number>) {
  const headers = { "underpass-agent-gates": gates };
  return api.connectAgent(token.toString("base64"), { port: 1, ...query }, { headers });
}

describe("the password of a new agent", () => {
  test("is required from the first request on, and stays when a later agent brings none", async () => {
    await using first = await start({ subdomain: "gate-stays", basicAuth: `ann:${PASSWORD}` });
    expect(await visit("gate-stays")).toBe("unauthorized");
    expect(await visit("gate-stays", RIGHT)).toBe("passed");
    await using second = await start({ subdomain: "gate-stays" });
    expect(second.tunnelId).toBe(first.tunnelId);
    expect(await visit("gate-stays")).toBe("unauthorized");
    expect(await visit("gate-stays", RIGHT)).toBe("passed");
    expect(await findTunnel("gate-stays")).toMatchObject({ authEnabled: true });
  });

  test("replaces the one before it", async () => {
    await using _first = await start({
      subdomain: "gate-replaced",
      basicAuth: "ann:first password",
    });
    await using _second = await start({
      subdomain: "gate-replaced",
      basicAuth: `ann:${PASSWORD}`,
    });
    expect(await visit("gate-replaced", basicAuthorization("ann", "first password"))).toBe(
      "unauthorized",
    );
    expect(await visit("gate-replaced", RIGHT)).toBe("passed");
  });

  test("is removed by `off`, which sets nothing else", async () => {
    const policy = { actions: [{ kind: "deny", path_prefix: "/admin" }] };
    const basicAuth = `ann:${PASSWORD}`;
    await (await start({ subdomain: "gate-off", basicAuth, policy })).close();
    for (let runs = 0; runs < 2; runs += 1) {
      await using _agent = await start({ subdomain: "gate-off", basicAuth: "off" });
      expect(await visit("gate-off")).toBe("passed");
      expect(await visit("gate-off", {}, "/admin")).toBe("forbidden");
    }
    const { id, authEnabled } = await findTunnel("gate-off");
    expect(authEnabled).toBe(false);
    const { body } = await owner.get<AuditEvent[]>("/events?action=tunnel_password_removed");
    expect(body.filter(({ resourceId }) => resourceId === id)).toHaveLength(1);
  });

  test("is recorded in the audit log as that of an agent, with the token and what was set", async () => {
    const { wireBytes, nonce } = await mintToken(owner);
    const own = { subdomain: "gate-audit", token: Buffer.from(wireBytes, "base64") };
    const policy = { actions: [{ kind: "deny", path_prefix: "/admin" }] };
    await (await start({ ...own, basicAuth: `ann:${PASSWORD}`, policy })).close();
    await (await start({ ...own, basicAuth: "off", policy: "off" })).close();
    const { id } = await findTunnel("gate-audit");
    const { body } = await owner.get<AuditEvent[]>("/events");
    const events = body.filter(({ resourceId }) => resourceId === id);
    expect(events.map(({ userEmail }) => userEmail)).toEqual(Array(5).fill(owner.email));
    const by = { by: "agent", tokenNonce: nonce };
    expect(Object.fromEntries(events.map(({ action, metadata }) => [action, metadata]))).toEqual({
      tunnel_created: { subdomain: "gate-audit", ...by },
      tunnel_password_set: { username: "ann", ...by },
      tunnel_policy_set: { actions: 1, ...by },
      tunnel_password_removed: by,
      tunnel_policy_removed: by,
    });
  });

  test("does not return when the owner has removed it and the agent reconnects", async () => {
    await using agent = await start({ subdomain: "gate-removed", basicAuth: `ann:${PASSWORD}` });
    await owner.delete(`/tunnels/${agent.tunnelId}/auth`);
    const reconnect = { port: origin.port, subdomain: "gate-removed", tunnel: agent.tunnelId };
    const { code } = await connectWithGates(PASSWORD_GATE, reconnect);
    expect(code).toBeUndefined();
    expect(await findTunnel("gate-removed")).toMatchObject({ authEnabled: false });
  });

  test("is that of one of two agents that start at the same time, and never none", async () => {
    const passwords = ["password of one", "password of two"];
    const agents = await Promise.allSettled(
      passwords.map((password) => start({ subdomain: "gate-race", basicAuth: `ann:${password}` })),
    );
    expect(await visit("gate-race")).toBe("unauthorized");
    const outcomes = await Promise.all(
      passwords.map((password) => visit("gate-race", basicAuthorization("ann", password))),
    );
    expect(outcomes.toSorted()).toEqual(["passed", "unauthorized"]);
    for (const agent of agents) if (agent.status === "fulfilled") await agent.value.close();
  });

  test("changes nothing when another token's agent serves the tunnel", async () => {
    await using _agent = await start({ subdomain: "gate-foreign" });
    const other = Buffer.from((await mintToken(owner)).wireBytes, "base64");
    const refused = start({
      subdomain: "gate-foreign",
      token: other,
      basicAuth: `bob:${PASSWORD}`,
    });
    await expect(refused).rejects.toMatchObject({ reason: "duplicate_name" });
    expect(await visit("gate-foreign")).toBe("passed");
  });

  test("is stored as a hash, and recorded in the audit log", async () => {
    await using agent = await start({ subdomain: "gate-stored", basicAuth: `ann:${PASSWORD}` });
    const rows = await api.sql<{ row: string }>(
      "select row_to_json(t)::text as row from tunnels t where id = $1",
      [agent.tunnelId],
    );
    expect(rows[0]!.row).not.toContain(PASSWORD);
    expect(rows[0]!.row).toContain("$argon2id$");
    const { body } = await owner.get<{ resourceId: string }[]>(
      "/events?action=tunnel_password_set",
    );
    expect(body.map(({ resourceId }) => resourceId)).toContain(agent.tunnelId);
  });
});

describe("underpass http", () => {
  const share = (...more: string[]) => [
    ...["http", String(origin.port), "--server", api.server.url, "--token-file", "TOKEN"],
    ...["--json", ...more],
  ];

  test("takes the password from the environment, and prints it nowhere", async () => {
    await using agent = await runAgent(
      share("--subdomain", "gate-command", "--log-level", "debug"),
      { token, env: { UNDERPASS_BASIC_AUTH: `ann:${PASSWORD}` } },
    );
    await agent.event("ready");
    expect(await visit("gate-command")).toBe("unauthorized");
    expect(await visit("gate-command", RIGHT)).toBe("passed");
    const commandLine = getCommandLine(agent.child.pid!) ?? "";
    expect(agent.stdout + agent.stderr + commandLine).not.toContain(PASSWORD);
  });

  test("removes the password with --basic-auth off", async () => {
    await (await start({ subdomain: "gate-opened", basicAuth: `ann:${PASSWORD}` })).close();
    const options = ["--subdomain", "gate-opened", "--basic-auth", "off"];
    await using agent = await runAgent(share(...options), { token });
    await agent.event("ready");
    expect(await visit("gate-opened")).toBe("passed");
  });

  test("adds headers to each request, in place of the visitor's", async () => {
    const more = ["--header", "X-User: the owner", "--header", "X-Env:dev"];
    await using agent = await runAgent(share("--name", "gate-headers", ...more), { token });
    await agent.event("ready");
    await visit("gate-headers", { "x-user": "forged", x_user: "forged", "x-other": "kept" });
    const headers = origin.requests[0]!.headers.map(
      ([name, value]) => `${name.toLowerCase()}: ${value}`,
    );
    expect(headers).toEqual(
      expect.arrayContaining(["x-user: the owner", "x-env: dev", "x-other: kept"]),
    );
    expect(headers.join("\n")).not.toContain("forged");
  });
});

describe("the traffic policy of a new agent", () => {
  test("is removed by `off`, also for the next agent", async () => {
    const policy = { actions: [{ kind: "deny", path_prefix: "/admin" }] };
    await (await start({ subdomain: "policy-off", policy })).close();
    for (const given of ["off" as const, "off" as const, undefined]) {
      await using _agent = await start({
        subdomain: "policy-off",
        ...(given && { policy: given }),
      });
      expect(await visit("policy-off", {}, "/admin")).toBe("passed");
    }
    const { id } = await findTunnel("policy-off");
    const { body } = await owner.get<{ resourceId: string }[]>(
      "/events?action=tunnel_policy_removed",
    );
    expect(body.filter(({ resourceId }) => resourceId === id)).toHaveLength(1);
  });

  test("applies from the first request on, and stays when a later agent brings none", async () => {
    const policy = { actions: [{ kind: "deny", path_prefix: "/admin" }] };
    await using _first = await start({ subdomain: "gate-policy", policy });
    expect(await visit("gate-policy", {}, "/admin")).toBe("forbidden");
    expect(await visit("gate-policy")).toBe("passed");
    await using _second = await start({ subdomain: "gate-policy" });
    expect(await visit("gate-policy", {}, "/admin")).toBe("forbidden");
    expect(origin.requests.map(({ target }) => target)).toEqual(["/"]);
  });

  test("reports how many visits it refused, and how it has changed", async () => {
    const policy = { actions: [{ kind: "deny", path_prefix: "/admin" }] };
    await using agent = await start({ subdomain: "gate-reports", policy });
    const refused = once(agent.events, "refused");
    const changed = once(agent.events, "gates");
    expect(await visit("gate-reports", {}, "/admin")).toBe("forbidden");
    expect(await refused).toEqual([1]);
    await owner.send("PUT", `/tunnels/${agent.tunnelId}/ip-allowlist`, {
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ cidrs: ["192.0.2.0/24"] }),
    });
    expect((await changed)[0]).toMatchObject({ names: ["addresses", "policy"] });
  });

  test("is recorded in the audit log once, however often the agent starts", async () => {
    const policy = {
      actions: [
        { kind: "header_set", name: "X-A", value: "1" },
        { kind: "rate_limit", requests_per_minute: 1_000 },
      ],
    };
    for (let runs = 0; runs < 2; runs += 1) {
      await (await start({ subdomain: "gate-policy-twice", policy })).close();
    }
    const { id } = await findTunnel("gate-policy-twice");
    const { body } = await owner.get<{ resourceId: string }[]>("/events?action=tunnel_policy_set");
    expect(body.filter(({ resourceId }) => resourceId === id)).toHaveLength(1);
  });

  test("is refused when it names this service as an issuer", async () => {
    const issuer = `http://localhost:${api.server.port}`;
    const policy = { actions: [{ kind: "jwt_validation", allowed_issuers: [issuer] }] };
    await expect(start({ subdomain: "gate-issuer", policy })).rejects.toMatchObject({
      reason: "invalid_request",
      message: "policy.actions[0].allowed_issuers[0] must not be this service: leave out the field",
    });
  });
});

describe("expose() refuses", () => {
  test.each<[string, ExposeOptions, string]>([
    ["a password without a user", { basicAuth: "secret" }, "basicAuth must be a user name and"],
    [
      "a short password",
      { basicAuth: "ann:short" },
      "the password of basicAuth must have at least",
    ],
    ["a policy without actions", { policy: {} as never }, "policy.actions is required"],
    [
      "a wrong action",
      { policy: { actions: [{ kind: "deny", path_prefix: "admin" }] } },
      'policy.actions[0].path_prefix must start with "/"',
    ],
    ["a header of the connection", { headers: { "Content-Length": "1" } }, "must not be a header"],
    ["the Host header", { headers: { host: "a" } }, "use hostHeader"],
    ["a header of two lines", { headers: { a: "1\r\nb: 2" } }, "the value of headers a"],
    ["a URL with a path", { url: "https://a.localhost/b" }, "url must be a host without a path"],
    ["two names", { url: "https://a.localhost", subdomain: "a" }, "subdomain or url, not both"],
  ])("%s", async (_, options, message) => {
    const error: unknown = await start(options).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).toContain(message);
  });
});

describe("the server refuses", () => {
  test.each([
    ["gates that are not JSON", "!!", {}],
    ["gates of another shape", encode({ basicAuth: "ann" }), {}],
    ["a short password", encode({ basicAuth: { username: "ann", password: "short" } }), {}],
    ["gates that are too long", "A".repeat(70_000), {}],
    ["a password of a TCP tunnel", PASSWORD_GATE, { protocol: "tcp" }],
  ])("%s", async (_, gates, query: Record<string, string>) => {
    const { code, reason } = await connectWithGates(gates, query);
    expect(code).toBe(CLOSE.invalid_request);
    expect(reason).not.toContain(PASSWORD);
  });
});

test("a plan without passwords refuses one, and the tunnel is not created", async () => {
  await using free = await startApi({ kind: "mockBilling" });
  const person = await free.owner();
  const bytes = Buffer.from((await mintToken(person)).wireBytes, "base64");
  const refused = expose({
    port: origin.port,
    server: free.server.url,
    token: bytes,
    subdomain: "gate-unpaid",
    basicAuth: `ann:${PASSWORD}`,
  });
  await expect(refused).rejects.toMatchObject({
    reason: "upgrade_required",
    message:
      "the plan does not include passwords for tunnels; an owner of the organization can change the plan",
  });
  expect((await person.get<Tunnel[]>("/tunnels")).body).toEqual([]);
});

test("where no plans are sold, the refusal of a password says that the operator sets the plan", async () => {
  const person = await api.owner();
  await api.sql("update organizations set plan = 'free' where id = $1", [person.orgId]);
  const token = Buffer.from((await mintToken(person)).wireBytes, "base64");
  const { url: server } = api.server;
  const refused = expose({ port: origin.port, server, token, basicAuth: `ann:${PASSWORD}` });
  await expect(refused).rejects.toMatchObject({
    reason: "upgrade_required",
    message:
      "the plan does not include passwords for tunnels; the operator of the server sets the plan",
  });
});
