/** `--inspect` of `underpass start` and `underpass tcp`: one inspector for all tunnels of the process. */
import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createTemporaryDir } from "../../../harness/directories.ts";
import {
  openSocket,
  startEcho,
  startTcpStack,
  type LocalServer,
  type TcpStack,
} from "../../../harness/relay/tcp/stack.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { runAgent, type RunningAgent } from "../../../harness/tunnel/agent.ts";
import { exchange } from "../../../harness/tunnel/raw-http.ts";

let stack: TcpStack;
let site: Server;
let echo: LocalServer;
let port: number;
let directory: string;
let file: string;

beforeAll(async () => {
  site = createServer((_, response) => void response.end("ok")).listen(0, "127.0.0.1");
  [stack, echo] = await Promise.all([
    startTcpStack({ address: "127.0.0.1", ports: 10 }),
    startEcho(),
    once(site, "listening"),
  ]);
  port = (site.address() as AddressInfo).port;
});
afterAll(async () => {
  site.closeAllConnections();
  site.close();
  await echo[Symbol.asyncDispose]();
  await stack[Symbol.asyncDispose]();
});
beforeEach(async () => {
  directory = await createTemporaryDir();
  file = join(directory, "underpass.yml");
  return () => rm(directory, { recursive: true, force: true });
});

const write = (...tunnels: string[]) =>
  writeFile(
    file,
    ["version: 1", `server: ${stack.api.server.url}`, "tunnels:", ...tunnels, ""].join("\n"),
  );
const start = (...more: string[]): Promise<RunningAgent> =>
  runAgent(["start", "--all", "--config", file, "--token-file", "TOKEN", "--json"].concat(more), {
    token: stack.token,
  });
const visit = (subdomain: string, path: string) =>
  exchange(stack.api.server.port, `GET ${path} HTTP/1.1\r\nHost: ${subdomain}.localhost\r\n\r\n`);

interface Inspected {
  tunnels: { name: string; publicUrl: string; state: string }[];
  requests: object[];
  connections: { tunnel: string; endedAt: string | null; bytesIn: number }[];
}

/** Asks the inspector that the agent has printed. */
async function ask<Name extends keyof Inspected>(
  agent: RunningAgent,
  name: Name,
): Promise<Inspected[Name]> {
  const { url } = (await agent.event("inspect")) as { url: string };
  const response = await fetch(`${url}/api/${name}`);
  return ((await response.json()) as Inspected)[name];
}

/** Waits until exactly these tunnels have been connected. */
const waitForTunnels = (agent: RunningAgent, names: string[]) =>
  expect
    .poll(async () => (await ask(agent, "tunnels")).map(({ name }) => name).sort(), WAIT_OPTIONS)
    .toEqual(names);

test("all tunnels of the file share one inspector, which names the tunnel of each request", async () => {
  await write(
    `  web: {local: ${port}, subdomain: inspected-web}`,
    `  api: {local: ${port}, subdomain: inspected-api}`,
    `  db: {local: ${echo.port}, protocol: tcp}`,
  );
  await using agent = await start("--inspect", "127.0.0.1:0");
  await waitForTunnels(agent, ["api", "db", "web"]);
  const tunnels = await ask(agent, "tunnels");
  expect(tunnels.find(({ name }) => name === "web")).toEqual({
    id: expect.any(String) as string,
    name: "web",
    publicUrl: `http://inspected-web.localhost:${stack.api.server.port}`,
    local: `http://localhost:${port}`,
    protocol: "http",
    state: "online",
  });
  await visit("inspected-web", "/first");
  await visit("inspected-api", "/second");
  await expect
    .poll(() => ask(agent, "requests"), WAIT_OPTIONS)
    .toMatchObject([
      { tunnel: "api", path: "/second", status: 200 },
      { tunnel: "web", path: "/first", status: 200 },
    ]);

  const { port: publicPort } = new URL(tunnels.find(({ name }) => name === "db")!.publicUrl);
  const socket = await openSocket(Number(publicPort));
  socket.write("hello");
  await once(socket, "data");
  expect(await ask(agent, "connections")).toMatchObject([
    { tunnel: "db", address: "127.0.0.1", bytesIn: 5, bytesOut: 5, endedAt: null },
  ]);
  socket.end();
  await expect
    .poll(
      async () => (await ask(agent, "connections")).map(({ endedAt }) => typeof endedAt),
      WAIT_OPTIONS,
    )
    .toEqual(["string"]);
  expect(await ask(agent, "tunnels")).toContainEqual(
    expect.objectContaining({ name: "db", protocol: "tcp", connections: { count: 1, open: 0 } }),
  );

  const { url } = (await agent.event("inspect")) as { url: string };
  const page = await (await fetch(url)).text();
  expect(page).toContain(`<li>web (online): <a href="http://inspected-web.localhost`);
  const asked = request(`${url}/api/requests`, { headers: { host: "rebound.test" } });
  asked.end();
  const [refused] = (await once(asked, "response")) as [{ statusCode: number; resume(): void }];
  refused.resume();
  expect(refused.statusCode).toBe(403);

  await write(`  web: {local: ${port}, subdomain: inspected-web}`);
  await waitForTunnels(agent, ["web"]);
  agent.child.kill("SIGTERM");
  expect(await agent.exit).toBe(0);
});

test("--inspect off opens no port, and an address that can't be used is only a notice", async () => {
  await write(`  quiet: {local: ${port}, subdomain: inspected-quiet}`);
  await using quiet = await start("--inspect", "off");
  await quiet.event("ready");
  expect(quiet.stdout).not.toContain('"inspect"');
  await using impossible = await start("--inspect", "192.0.2.1:4040");
  expect((await impossible.event("notice")).message).toContain("can't listen at 192.0.2.1:4040");
  await impossible.event("ready");
});

test("`underpass tcp` lists the connections of its tunnel", async () => {
  await using tunnel = await stack.serve(echo.port, ["--inspect", "127.0.0.1:0"]);
  expect(await ask(tunnel, "tunnels")).toMatchObject([
    { id: tunnel.tunnelId, publicUrl: tunnel.url, protocol: "tcp", state: "online" },
  ]);
  const socket = await tunnel.visit();
  socket.end("bye");
  socket.resume();
  await once(socket, "close");
  await tunnel.event("connection");
  expect(await ask(tunnel, "connections")).toMatchObject([
    { address: "127.0.0.1", via: "relay", bytesIn: 3, bytesOut: 3, endedAt: expect.any(String) },
  ]);
});
