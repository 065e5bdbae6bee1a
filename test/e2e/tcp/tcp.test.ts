/** `underpass tcp` end to end: server, relay and agent as processes of their own. */
import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import pg from "pg";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import {
  startEcho,
  startLocalServer,
  startTcpStack,
  type TcpStack,
} from "../../harness/relay/tcp/stack.ts";
import { runAgent } from "../../harness/tunnel/agent.ts";
import { waitForEnd, readAll, readExactly } from "../../harness/relay/tcp/tunnel-port.ts";

const MiB = 1024 * 1024;
/** The relay's ports; each tunnel keeps its own. */
const PORTS = 30;

let stack: TcpStack;
beforeAll(async () => {
  stack = await startTcpStack({ address: "127.0.0.1", ports: PORTS });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

test("a visitor of the public port reaches the local server", async () => {
  const site = createServer((_request, response) => response.end("hello")).listen(0, "127.0.0.1");
  await once(site, "listening");
  await using tunnel = await stack.serve((site.address() as AddressInfo).port);
  expect(tunnel.url).toBe(`tcp://127.0.0.1:${tunnel.publicPort}`);
  const answer = await fetch(`http://127.0.0.1:${tunnel.publicPort}/`);
  expect(await answer.text()).toBe("hello");
  site.closeAllConnections();
  site.close();
});

test("a warning is printed when nothing listens locally", async () => {
  const echo = await startEcho();
  await echo[Symbol.asyncDispose]();
  const local = `localhost:${echo.port}`;
  const args = ["tcp", local, "--server", stack.api.server.url, "--token-file", "TOKEN"];
  await using agent = await runAgent(args, { token: stack.token });
  const warning = `nothing is listening on ${local} yet; start the local server\n`;
  await vi.waitUntil(() => agent.stdout.includes(warning), WAIT_OPTIONS);
});

test.each([
  ["http", "http://a..b:3000"],
  ["tcp", "a..b:3000"],
])("%s says that the host of the local server does not exist", async (command, local) => {
  // No resolver is asked for a name with an empty label.
  const args = [command, "a..b:3000", "--server", stack.api.server.url, "--token-file", "TOKEN"];
  await using agent = await runAgent(args, { token: stack.token });
  const warning = `the host of ${local} is not known on this machine; check its name\n`;
  await vi.waitUntil(() => agent.stdout.includes(warning), WAIT_OPTIONS);
  expect(agent.stdout).not.toContain("nothing is listening");
});

test("a PostgreSQL client works through the tunnel", async () => {
  const url = new URL(await stack.api.server.databaseUrl());
  await using tunnel = await stack.serve(Number(url.port));
  url.port = String(tunnel.publicPort);
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  const { rows } = await client.query<{ n: string }>(
    "select count(*) as n from generate_series(1, 100000)",
  );
  expect(rows).toEqual([{ n: "100000" }]);
  await client.end();
});

test("20 MiB each way, more than any window, arrive complete at the same time, and each direction ends separately", async () => {
  await using echo = await startEcho();
  await using tunnel = await stack.serve(echo.port);
  const visitor = await tunnel.visit();
  const payload = randomBytes(20 * MiB);
  visitor.end(payload);
  const received = await readAll(visitor);
  expect(createHash("sha256").update(received).digest("hex")).toBe(
    createHash("sha256").update(payload).digest("hex"),
  );
  expect(await tunnel.event("connection")).toMatchObject({
    address: "127.0.0.1",
    bytesIn: payload.length,
    bytesOut: payload.length,
  });
});

test("a reset by the local server resets the visitor", async () => {
  await using local = await startLocalServer((socket) =>
    socket.once("data", () => socket.resetAndDestroy()),
  );
  await using tunnel = await stack.serve(local.port);
  const visitor = await tunnel.visit();
  visitor.write("x");
  expect(await waitForEnd(visitor)).toBe("ECONNRESET");
});

test("while nothing listens locally, visitors are reset and the agent reports why", async () => {
  const local = await startEcho();
  await using tunnel = await stack.serve(local.port);
  await local[Symbol.asyncDispose]();
  const visitor = await tunnel.visit();
  expect(await waitForEnd(visitor)).toBe("ECONNRESET");
  expect(await tunnel.event("connection")).toMatchObject({
    problem: `nothing listens at localhost:${local.port}; start the local server, or name another port`,
  });
});

test("1,000 visitors are served at the same time", async () => {
  await using echo = await startEcho();
  await using tunnel = await stack.serve(echo.port);
  const visitors = await Promise.all(Array.from({ length: 1_000 }, () => tunnel.visit()));
  const answers = visitors.map(async (visitor, i) => {
    visitor.write(`visitor ${i};`);
    const answer = await readExactly(visitor, `visitor ${i};`.length);
    return String(answer) === `visitor ${i};`;
  });
  expect((await Promise.all(answers)).filter((isCorrect) => isCorrect)).toHaveLength(1_000);
  for (const visitor of visitors) visitor.destroy();
});

test("--allow accepts only the given addresses, and is stored in the tunnel", async () => {
  await using echo = await startEcho();
  await using tunnel = await stack.serve(echo.port, [
    "--allow",
    "203.0.113.0/24",
    "--allow",
    "::1",
  ]);
  const visitor = await tunnel.visit().catch(() => null);
  if (visitor) expect(await waitForEnd(visitor)).toBe("ECONNRESET");
  const { body } = await stack.owner.get<Tunnel[]>("/tunnels");
  const row = body.find(({ id }) => id === tunnel.tunnelId);
  expect(row?.allowedCidrs).toEqual(["203.0.113.0/24", "::1/128"]);
  expect(await tunnel.event("gates")).toEqual({ event: "gates", gates: ["addresses"] });
  await stack.owner.put(`/tunnels/${tunnel.tunnelId}/ip-allowlist`, { cidrs: ["127.0.0.0/8"] });
  await vi.waitUntil(async () => {
    const next = await tunnel.visit().catch(() => null);
    next?.end("in");
    return next && String(await readAll(next).catch(() => "")) === "in";
  }, WAIT_OPTIONS);
});

test("--remote-port requests a public port, which survives restarts of the agent", async () => {
  await using echo = await startEcho();
  const requestedPort = await findFreePort();
  const args = ["--subdomain", "sticky", "--remote-port", String(requestedPort)];
  const first = await stack.serve(echo.port, args);
  expect(first.publicPort).toBe(requestedPort);
  await first[Symbol.asyncDispose]();
  await using second = await stack.serve(echo.port, ["--subdomain", "sticky"]);
  expect(second.publicPort).toBe(requestedPort);
});

test("--ttl does not extend a tunnel that exists, and a notice says so", async () => {
  await using echo = await startEcho();
  const reserved = { localPort: 1, protocol: "tcp", subdomain: "short-lived", ttlSeconds: 600 };
  await stack.owner.post("/tunnels", reserved);
  await using tunnel = await stack.serve(echo.port, ["--subdomain", "short-lived", "--ttl", "3h"]);
  expect((await tunnel.event("notice"))["message"]).toMatch(
    /^the tunnel expires in (?:10|9) min, because it existed before, and --ttl does not extend it$/,
  );
});

/** The relay's highest port that none of the organization's tunnels uses. */
async function findFreePort(): Promise<number> {
  const { body: tunnels } = await stack.owner.get<Tunnel[]>("/tunnels");
  const usedPorts = new Set(tunnels.map(({ publicPort }) => publicPort));
  let port = stack.relay.port + PORTS;
  while (usedPorts.has(port)) port -= 1;
  return port;
}

test.each([
  [
    "v1",
    (port: number, publicPort: number) =>
      `PROXY TCP4 127.0.0.1 127.0.0.1 ${port} ${publicPort}\r\n`,
  ],
  [
    "v2",
    (port: number, publicPort: number) => {
      const ports = Buffer.alloc(4);
      ports.writeUInt16BE(port, 0);
      ports.writeUInt16BE(publicPort, 2);
      const fixed = "0d0a0d0a000d0a515549540a2111000c7f0000017f000001";
      return Buffer.concat([Buffer.from(fixed, "hex"), ports]).toString("latin1");
    },
  ],
])(
  "--proxy-protocol %s begins a connection with the visitor's address",
  async (version, header) => {
    await using echo = await startEcho();
    await using tunnel = await stack.serve(echo.port, ["--proxy-protocol", version]);
    const visitor = await tunnel.visit();
    visitor.end("and the rest");
    const expected = `${header(visitor.localPort ?? 0, tunnel.publicPort)}and the rest`;
    expect((await readAll(visitor)).toString("latin1")).toBe(expected);
  },
);
