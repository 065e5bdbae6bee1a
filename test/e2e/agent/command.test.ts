import type { Socket } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { runCommandLine } from "../../../agent/cli/run-command-line.ts";
import { expose } from "../../../agent/expose.ts";
import { UsageError } from "../../../agent/options.ts";
import { ROOT } from "../../../self-host/build/build.ts";
import { getCommandLine } from "../../../self-host/processes/processes.ts";
import { startConnectProxy } from "../../harness/fakes/connect-proxy.ts";
import { runAgent, type RunningAgent } from "../../harness/tunnel/agent.ts";
import { mintToken, startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import { OK, startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { findErrorCode } from "../../harness/tunnel/owned-tunnel.ts";
import { reservePort } from "../../harness/ports.ts";
import { exchange, findHeader } from "../../harness/tunnel/raw-http.ts";

let api: TestApi;
let owner: Person;
let origin: RawOrigin;
let token: Buffer;

beforeAll(async () => {
  [api, origin] = await Promise.all([startApi(), startRawOrigin()]);
  owner = await api.owner();
  token = Buffer.from((await mintToken(owner)).wireBytes, "base64");
});
afterAll(async () => {
  await api.stop();
  await origin.stop();
});
beforeEach(() => {
  origin.requests.length = 0;
  origin.respond = () => OK;
});

/** The arguments of an agent that shares the local server of this file. */
const share = (...more: string[]) => [
  ...["http", String(origin.port), "--server", api.server.url, "--token-file", "TOKEN"],
  ...more,
];

/** Starts a command as npx does it: npm, a shell, and the command. */
const NPX = {
  prefix: ["/bin/sh", "-c", '/bin/sh -c "\\"\\$@\\"; true" sh "$@"; true', "sh"],
  env: { npm_command: "exec" },
};

const visit = (subdomain: string, path = "/") =>
  exchange(api.server.port, `GET ${path} HTTP/1.1\r\nHost: ${subdomain}.localhost\r\n\r\n`);

test.runIf(process.platform === "linux").each([
  ["webhooks", ["shop", "--forward", "1"], "disconnected"],
  ["vpn", ["office"], "retrying"],
])("underpass %s ends when npx, which started it, is ended", async (command, args, event) => {
  const server = ["--server", `http://127.0.0.1:${await reservePort()}`, "--token-file", "TOKEN"];
  const agent = await runAgent([command, ...args, ...server, "--json"], { token, ...NPX });
  await agent.event(event);
  agent.child.kill("SIGTERM");
  // The command has the other end of the pipe.
  await agent.exit;
});

describe("underpass http --json", () => {
  test("prints the tunnel and each request, one JSON object per line", async () => {
    await using agent = await runAgent(share("--subdomain", "lines", "--json"), { token });
    const { tunnelId, ...ready } = await agent.event("ready");
    expect(ready).toEqual({
      event: "ready",
      url: `http://lines.localhost:${api.server.port}`,
      local: `http://localhost:${origin.port}`,
    });
    expect(tunnelId).toMatch(/^[0-9a-f-]{36}$/);
    const { headers } = await visit("lines", "/menu?of=today");
    const { durationMs, ...request } = await agent.event("request");
    expect(request).toEqual({
      event: "request",
      kind: "request",
      method: "GET",
      path: "/menu?of=today",
      status: 200,
      bytesIn: 0,
      bytesOut: 2,
      requestId: findHeader(headers, "underpass-request-id"),
    });
    expect(durationMs).toBeGreaterThanOrEqual(0);
  });

  test.runIf(process.platform === "linux")(
    "ends when npx, which started it, is ended",
    async () => {
      for (const [at, signal] of (["SIGTERM", "SIGKILL"] as const).entries()) {
        const name = `npx-${at}`;
        const agent = await runAgent(share("--subdomain", name, "--json"), { token, ...NPX });
        await agent.event("ready");
        agent.child.kill(signal);
        // The command has the other end of the pipe.
        await agent.exit;
        expect((await visit(name)).status).toBe(502);
      }
    },
  );

  test("ends when npx alone gets a SIGINT", async () => {
    const command = ["npx", "--prefix", ROOT, "--no-install", "underpass"];
    const args = share("--subdomain", "npx-interrupted", "--json");
    const agent = await runAgent(args, { token, command });
    await agent.event("ready");
    agent.child.kill("SIGINT");
    await agent.exit;
    expect((await visit("npx-interrupted")).status).toBe(502);
  });

  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
    "exits with 0 after %s, and the tunnel is offline",
    async (signal) => {
      await using agent = await runAgent(share("--subdomain", "stopped", "--json"), { token });
      await agent.event("ready");
      agent.child.kill(signal);
      expect(await agent.exit).toBe(0);
      expect((await visit("stopped")).status).toBe(502);
    },
  );

  test.each<[string, (agent: RunningAgent) => unknown]>([
    ["its terminal is closed", ({ child }) => child.kill("SIGHUP")],
    ["its output is no longer read", ({ child }) => child.stdout!.destroy()],
  ])("lets open requests finish when %s, and later visitors get agent_offline", async (_, stop) => {
    const opened = Promise.withResolvers<Socket>();
    origin.respond = ({ target }, socket) =>
      target === "/open" ? void opened.resolve(socket) : OK;
    await using agent = await runAgent(share("--subdomain", "hung-up", "--json"), { token });
    await agent.event("ready");
    const open = visit("hung-up", "/open");
    const socket = await opened.promise;
    stop(agent);
    // The agent learns that its output is not read when it prints a request.
    await visit("hung-up", "/printed");
    socket.write(OK);
    expect((await open).status).toBe(200);
    expect(await agent.exit).toBe(0);
    expect(findErrorCode(await visit("hung-up"))).toBe("agent_offline");
  });

  test("takes every option from the environment", async () => {
    const env = {
      UNDERPASS_SERVER: api.server.url,
      UNDERPASS_SUBDOMAIN: "environment",
      UNDERPASS_JSON: "1",
    };
    const args = ["http", String(origin.port), "--token-file", "TOKEN"];
    await using agent = await runAgent(args, { token, env });
    expect((await agent.event("ready")).url).toContain("//environment.");
  });

  test("never prints its token", async () => {
    await using agent = await runAgent(share("--subdomain", "secret", "--log-level", "debug"), {
      token,
    });
    await expect.poll(() => agent.stdout, WAIT_OPTIONS).toContain("secret.localhost");
    await visit("secret");
    const commandLine = getCommandLine(agent.child.pid!) ?? "";
    expect(commandLine).toContain("--token-file");
    for (const encoding of ["base64", "base64url", "hex"] as const) {
      const secret = token.toString(encoding).slice(0, 40);
      expect(agent.stdout + agent.stderr + commandLine).not.toContain(secret);
    }
  });
});

describe("--log-level", () => {
  /** Prints one line of each level: the URL, nothing listens yet, a request fails, where to inspect, and a request's id. */
  test.each([
    ["error", { url: true, warning: false, failure: false, inspector: false, id: false }],
    ["warn", { url: true, warning: true, failure: true, inspector: false, id: false }],
    ["info", { url: true, warning: true, failure: true, inspector: true, id: false }],
    ["debug", { url: true, warning: true, failure: true, inspector: true, id: true }],
  ])("%s", async (level, expected) => {
    const name = `level-${level}`;
    const port = String(await reservePort());
    const args = ["http", port, "--server", api.server.url, "--token-file", "TOKEN"];
    await using agent = await runAgent([...args, "--subdomain", name, "--log-level", level], {
      token,
    });
    await expect
      .poll(async () => findErrorCode(await visit(name)), WAIT_OPTIONS)
      .toBe("origin_unreachable");
    const { headers } = await visit(name, "/the-last");
    agent.child.kill("SIGTERM");
    expect(await agent.exit).toBe(0);
    expect({
      url: agent.stdout.includes(`Forwarding http://${name}.`),
      warning: agent.stdout.includes("nothing is listening"),
      failure: agent.stdout.includes("502 GET /the-last"),
      inspector: agent.stdout.includes("Inspect at "),
      id: agent.stdout.includes(findHeader(headers, "underpass-request-id")!),
    }).toEqual(expected);
  });
});

describe("with an invalid token the agent exits with 1 and the reason:", () => {
  const changed = (at: number) => {
    const bytes = Buffer.from(token);
    bytes[(at + bytes.length) % bytes.length]! ^= 1;
    return bytes;
  };
  const cases: Record<string, () => Buffer> = {
    "cut short": () => token.subarray(0, -1),
    "with a byte too many": () => Buffer.concat([token, Buffer.from([0])]),
    "with another version": () => changed(0),
    "of another kind": () => changed(4),
    "with another nonce": () => changed(8),
    "of another organization": () => changed(24),
    "with another end": () => changed(-80),
    "with another signature": () => changed(-1),
  };

  // In this process: how the agent reports a rejection does not depend on its reason.
  test.each(Object.entries(cases))("%s", async (_, bytes) => {
    const { port } = origin;
    await expect(expose({ port, server: api.server.url, token: bytes() })).rejects.toMatchObject({
      name: "Rejected",
      reason: "unauthorized",
    });
  });

  test("from another kind of file", async () => {
    const bytes = Buffer.from("-----BEGIN PRIVATE KEY-----\n");
    await using agent = await runAgent(share("--json"), { token: bytes });
    expect(await agent.exit).toBe(1);
    expect(await agent.event("rejected")).toMatchObject({ reason: "unauthorized" });
    expect(agent.stdout.trim().split("\n")).toHaveLength(1);
  });

  test("of another server", async () => {
    await using other = await startApi();
    const { wireBytes } = await mintToken(await other.owner());
    await using agent = await runAgent(share("--json"), {
      token: Buffer.from(wireBytes, "base64"),
    });
    expect(await agent.exit).toBe(1);
    expect(await agent.event("rejected")).toMatchObject({ reason: "unauthorized" });
    expect(agent.stdout.trim().split("\n")).toHaveLength(1);
  });

  test("revoked while it serves", async () => {
    const { wireBytes, nonce } = await mintToken(owner);
    await using agent = await runAgent(share("--subdomain", "revoked", "--json"), {
      token: Buffer.from(wireBytes, "base64"),
    });
    await agent.event("ready");
    await owner.delete(`/tokens/${nonce}`);
    expect(await agent.exit).toBe(1);
    expect(await agent.event("rejected")).toEqual({
      event: "rejected",
      reason: "unauthorized",
      message: "the token was revoked",
    });
  });

  test("and it prints what to do", async () => {
    await using agent = await runAgent(share(), { token: changed(-1) });
    expect(await agent.exit).toBe(1);
    expect(agent.stderr).toMatch(
      /^underpass: unauthorized: [^\n]+\nWrite a valid token to \S+\/token, and run the command again\.\n$/,
    );
  });
});

describe("after bad usage the agent exits with 2 and says what is wrong:", () => {
  test.each([
    [["http", "nowhere/at/all"], "is not a port"],
    [["serve"], "unknown command: serve"],
    [[], "underpass <command>"],
    [["http", "3000", "--server", "ftp://x"], "ftp://x is not a server address"],
    [["http", "3000", "--server", "htp:/foo"], "a URL of a server must begin with https:// or"],
    [["http", "3000", "--token-file", "missing"], "missing does not exist"],
    [["start", "--config", "missing.yml"], "missing.yml: it does not exist"],
    [["start", "--config", "TOKEN"], "token:1:1: "],
  ])("%j", async (args, expected) => {
    await using agent = await runAgent(args, { token: Buffer.from("versoin: 1") });
    expect(await agent.exit).toBe(2);
    expect(agent.stderr).toContain(expected);
    expect(agent.stdout).toBe("");
  });

  test.each([
    [[], "the local port is missing"],
    [["3000", "4000"], "unexpected argument: 4000"],
    [["3000", "--ttl", "soon"], "--ttl"],
    [["3000", "--colour"], "--colour"],
    [["3000", "--log-level", "loud"], "--log-level"],
    [["3000", "--url", "a.localhost", "--subdomain", "a"], "not both"],
  ])("http %j", async (args, expected) => {
    const failed = await runCommandLine(["http", ...args]).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(UsageError);
    expect(String(failed)).toContain(expected);
  });

  test("a missing token is not bad usage", async () => {
    await using agent = await runAgent(["http", "3000", "--server", api.server.url]);
    expect(await agent.exit).toBe(1);
    expect(agent.stderr).toContain("run: underpass login");
  });
});

describe("a proxy between agent and server", () => {
  test("is used when the environment names it", async () => {
    await using proxy = await startConnectProxy();
    await using agent = await runAgent(share("--subdomain", "proxied", "--json"), {
      token,
      env: { HTTP_PROXY: proxy.url },
    });
    await agent.event("ready");
    expect((await visit("proxied")).status).toBe(200);
    expect(proxy.targets).toEqual([`127.0.0.1:${api.server.port}`]);
  });

  test("is used for https too, and not for a server that the environment excludes", async () => {
    await using proxy = await startConnectProxy();
    const args = ["http", "1", "--server", "https://underpass.test", "--token-file", "TOKEN"];
    const env = { HTTPS_PROXY: proxy.url, NO_PROXY: "127.0.0.1" };
    await using refused = await runAgent([...args, "--json"], { token, env });
    await refused.event("retrying");
    expect(proxy.targets[0]).toBe("underpass.test:443");
    const before = proxy.targets.length;
    await using agent = await runAgent(share("--subdomain", "direct", "--json"), {
      token,
      env: { ...env, HTTP_PROXY: proxy.url },
    });
    await agent.event("ready");
    expect(proxy.targets.slice(before)).not.toContain(`127.0.0.1:${api.server.port}`);
  });
});

describe("--host-header", () => {
  const BLOCKED = 'Blocked request. This host ("x") is not allowed.';
  const hostsSeen = () =>
    origin.requests.map(
      ({ headers }) => headers.find(([name]) => name.toLowerCase() === "host")?.[1],
    );
  const own = () => `localhost:${origin.port}`;

  test.each<[mode: string, expected: () => string]>([
    ["preserve", () => "name.localhost"],
    ["rewrite", own],
    ["app.test", () => "app.test"],
  ])("%s decides the host name that the local server receives", async (mode, expected) => {
    await using agent = await runAgent(
      share("--subdomain", "name", "--json", "--host-header", mode),
      { token },
    );
    await agent.event("ready");
    await visit("name");
    expect(hostsSeen()).toEqual([expected()]);
  });

  test("auto repeats a request with the local server's own name when the public one is refused", async () => {
    origin.respond = ({ headers }) =>
      headers.some(([name, value]) => name.toLowerCase() === "host" && value === own())
        ? OK
        : `HTTP/1.1 403 Forbidden\r\ncontent-length: ${BLOCKED.length}\r\n\r\n${BLOCKED}`;
    await using agent = await runAgent(share("--subdomain", "auto", "--json"), { token });
    await agent.event("ready");
    expect((await visit("auto")).body.toString()).toBe("ok");
    expect((await visit("auto")).body.toString()).toBe("ok");
    expect(hostsSeen()).toEqual(["auto.localhost", own(), own()]);
    expect((await agent.event("notice")).message).toContain(
      "its own host name is used from now on",
    );
  });

  test("auto does not change an application's own 403", async () => {
    origin.respond = () => "HTTP/1.1 403 Forbidden\r\ncontent-length: 4\r\n\r\nmine";
    await using agent = await runAgent(share("--subdomain", "mine", "--json"), { token });
    await agent.event("ready");
    const { status, body } = await visit("mine");
    expect([status, body.toString()]).toEqual([403, "mine"]);
    expect(hostsSeen()).toEqual(["mine.localhost"]);
  });
});
