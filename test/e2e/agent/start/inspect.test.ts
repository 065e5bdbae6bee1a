/** `--inspect` of `underpass start` and `underpass tcp`: one inspector for all tunnels of the process. */
import { once } from "node:events";
import { request } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { useTunnelFile } from "../../../harness/agent/tunnel-file.ts";
import {
  openSocket,
  startEcho,
  startTcpStack,
  type LocalServer,
} from "../../../harness/relay/tcp/stack.ts";
import { reservePort } from "../../../harness/ports.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { runAgent, type RunningAgent } from "../../../harness/tunnel/agent.ts";

const file = useTunnelFile(
  () => startTcpStack({ address: "127.0.0.1", ports: 10 }),
  (_, response) => void response.end("ok"),
);
let echo: LocalServer;
beforeAll(async () => void (echo = await startEcho()));
afterAll(() => echo[Symbol.asyncDispose]());

const start = (...more: string[]): Promise<RunningAgent> =>
  runAgent(
    ["start", "--all", "--config", file.path, "--token-file", "TOKEN", "--json"].concat(more),
    {
      token: file.stack.token,
    },
  );
interface Inspected {
  tunnels: { id: string; name: string; publicUrl: string; protocol: string; state: string }[];
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
  await file.write([
    `  web: {local: ${file.port}, subdomain: inspected-web}`,
    `  api: {local: ${file.port}, subdomain: inspected-api}`,
    `  db: {local: ${echo.port}, protocol: tcp}`,
  ]);
  await using agent = await start("--inspect", "127.0.0.1:0");
  await waitForTunnels(agent, ["api", "db", "web"]);
  const tunnels = await ask(agent, "tunnels");
  expect(tunnels.find(({ name }) => name === "web")).toEqual({
    id: expect.any(String) as string,
    name: "web",
    publicUrl: `http://inspected-web.localhost:${file.stack.api.server.port}`,
    local: `http://localhost:${file.port}`,
    protocol: "http",
    state: "online",
  });
  await file.visit("inspected-web", "/first");
  await file.visit("inspected-api", "/second");
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
  const { id } = (await ask(agent, "tunnels")).find(({ name }) => name === "web")!;
  expect(page).toContain(`/requests?tunnel_id=${id}">captured requests</a>`);
  const asked = request(`${url}/api/requests`, { headers: { host: "rebound.test" } });
  asked.end();
  const [refused] = (await once(asked, "response")) as [{ statusCode: number; resume(): void }];
  refused.resume();
  expect(refused.statusCode).toBe(403);

  await file.write([`  web: {local: ${file.port}, subdomain: inspected-web}`]);
  await waitForTunnels(agent, ["web"]);
  agent.child.kill("SIGTERM");
  expect(await agent.exit).toBe(0);
});

test("--inspect off opens no port, and an address that can't be used is only a notice", async () => {
  await file.write([`  quiet: {local: ${file.port}, subdomain: inspected-quiet}`]);
  await using quiet = await start("--inspect", "off");
  await quiet.event("ready");
  expect(quiet.stdout).not.toContain('"inspect"');
  await using impossible = await start("--inspect", "192.0.2.1:4040");
  expect((await impossible.event("notice")).message).toContain("can't listen at 192.0.2.1:4040");
  await impossible.event("ready");
});

test("a tunnel of the file has an inspector of its own, or none", async () => {
  const port = await reservePort();
  await file.write([
    `  shown: {local: ${file.port}, subdomain: inspected-shown}`,
    `  hidden: {local: ${file.port}, subdomain: inspected-hidden, inspect: off}`,
    `  apart: {local: ${echo.port}, protocol: tcp, inspect: "127.0.0.1:${port}"}`,
  ]);
  await using agent = await start("--inspect", "127.0.0.1:0");
  const listApart = async (): Promise<string[]> => {
    const response = await fetch(`http://127.0.0.1:${port}/api/tunnels`).catch(() => undefined);
    const { tunnels } = ((await response?.json()) ?? { tunnels: [] }) as Inspected;
    return tunnels.map(({ name, protocol }) => `${name} ${protocol}`);
  };
  const visitHidden = async () => (await file.visit("inspected-hidden")).status;
  await expect.poll(visitHidden, WAIT_OPTIONS).toBe(200);
  await expect.poll(listApart, WAIT_OPTIONS).toEqual(["apart tcp"]);
  await waitForTunnels(agent, ["shown"]);

  // Reopened, it listens at the same address again; without the key, there is no such server any more.
  await file.write([`  apart: {local: ${file.port}, inspect: "127.0.0.1:${port}"}`]);
  await expect.poll(listApart, WAIT_OPTIONS).toEqual(["apart http"]);
  await file.write([`  apart: {local: ${file.port}}`]);
  await waitForTunnels(agent, ["apart"]);
  await expect.poll(listApart, WAIT_OPTIONS).toEqual([]);
});

test("`underpass tcp` lists the connections of its tunnel", async () => {
  await using tunnel = await file.stack.serve(echo.port, ["--inspect", "127.0.0.1:0"]);
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

test("a private tunnel has no URL, but the command that connects to it", async () => {
  const args = ["--private", "--subdomain", "inspected-safe", "--inspect", "127.0.0.1:0"];
  await using tunnel = await file.stack.serve(echo.port, args);
  const connect = "underpass connect inspected-safe";
  expect(await ask(tunnel, "tunnels")).toMatchObject([{ publicUrl: null, connect }]);
  const { url } = (await tunnel.event("inspect")) as { url: string };
  expect(await (await fetch(url)).text()).toContain(
    `<li>inspected-safe (online): ${connect}, <a href=`,
  );
});
