/** `underpass logs` as a process, on a complete server whose tunnels are visited. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mintToken, waitUntil } from "../../../harness/server/api.ts";
import { canOpenTerminals, typeCommand } from "../../../harness/terminal.ts";
import { runAgent, runToEnd, type RunningAgent } from "../../../harness/tunnel/agent.ts";
import { startFaultProxy } from "../../../../chaos/faults/fault-proxy.ts";
import {
  startTunnelOwner,
  type OwnedTunnel,
  type TunnelOwner,
} from "../../../harness/tunnel/owned-tunnel.ts";
import { waitForCaptures } from "../../../harness/tunnel/visited-tunnel.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { ROOT } from "../../../../self-host/build/build.ts";

let world: TunnelOwner;
let site: Server;
let token: Buffer;
let shop: OwnedTunnel;
let blog: OwnedTunnel;

beforeAll(async () => {
  site = createServer(({ url }, answer) => {
    answer.statusCode = url?.startsWith("/broken") ? 500 : 200;
    answer.end("x".repeat(1500));
  }).listen(0, "127.0.0.1");
  world = await startTunnelOwner();
  const { port } = site.address() as AddressInfo;
  token = Buffer.from((await mintToken(world.owner)).wireBytes, "base64");
  shop = await world.expose("logged-shop", port);
  blog = await world.expose("logged-blog", port);
});
afterAll(async () => {
  await world.stop();
  site.close();
});

interface RequestLine {
  event: string;
  tunnel: string;
  method: string;
  path: string;
  status: number;
}

const share = (...args: string[]) => [
  ...["logs", ...args, "--server", world.api.server.url, "--token-file", "TOKEN"],
];
const parseRequests = (output: string): RequestLine[] =>
  output
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line) as RequestLine)
    .filter(({ event }) => event === "request");
const waitForPath = (agent: RunningAgent, path: string) =>
  waitUntil(() =>
    Promise.resolve(parseRequests(agent.stdout).find((request) => request.path === path)),
  );

describe("underpass logs", () => {
  test("prints each request to all tunnels as it happens, as JSON", async () => {
    await using logs = await runAgent(share("--json"), { token });
    await logs.event("ready");
    await shop.visit("/live?secret=1");
    expect(await waitForPath(logs, "/live")).toMatchObject({
      tunnel: "logged-shop",
      method: "GET",
      status: 200,
      response_size: 1500,
    });
    await blog.visit("/live-too");
    expect(await waitForPath(logs, "/live-too")).toMatchObject({ tunnel: "logged-blog" });
    expect(logs.stdout).not.toContain("secret");
    logs.child.kill("SIGINT");
    expect(await logs.exit).toBe(0);
  });

  test("prints only the requests of one tunnel that match the filter", async () => {
    const args = share("logged-shop", "--json", "--filter=status:5xx -path:/broken/known");
    await using logs = await runAgent(args, { token });
    await logs.event("ready");
    await blog.visit("/broken/elsewhere");
    await shop.visit("/fine");
    await shop.visit("/broken/known");
    await shop.visit("/broken/new");
    await waitForPath(logs, "/broken/new");
    expect(parseRequests(logs.stdout).map(({ path }) => path)).toEqual(["/broken/new"]);
  });

  test("lists past requests with --limit, oldest first, and ends", async () => {
    for (const path of ["/past/1", "/past/2", "/past/3"]) {
      await shop.visit(path);
      await waitForCaptures(world.owner, { path }, 1);
    }
    const filter = "--filter=path:/past/";
    const past = await runToEnd(share("logged-shop", filter, "--limit", "2", "--json"), { token });
    expect(past.code).toBe(0);
    expect(parseRequests(past.stdout).map(({ path }) => path)).toEqual(["/past/2", "/past/3"]);
    const future = "--since=2099-01-01T00:00:00Z";
    const stderr = "underpass: no stored request matches\n";
    expect(await runToEnd(share(future), { token })).toMatchObject({ code: 0, stdout: "", stderr });
    const all = await runToEnd(share(filter, "--since", "1h"), { token });
    expect(all.stdout.trim().split("\n")).toHaveLength(3);
    expect(all.stdout).toMatch(
      /^\d{4}-\d\d-\d\dT[\d:.]+Z {2}GET +200 +\d+ ms +1\.5 kB {2}logged-shop {2}\/past\/1$/m,
    );
  });

  test("continues with new requests after the past ones with --follow, each of them once", async () => {
    await shop.visit("/follow/1");
    await waitForCaptures(world.owner, { path: "/follow/1" }, 1);
    const filter = "--filter=path:/follow/";
    const args = share("logged-shop", filter, "--limit", "10", "--follow", "--json");
    await using logs = await runAgent(args, { token });
    await logs.event("ready");
    await shop.visit("/follow/2");
    await waitForPath(logs, "/follow/2");
    const paths = parseRequests(logs.stdout).map(({ path }) => path);
    expect(paths).toEqual(["/follow/1", "/follow/2"]);
  });

  test("reconnects, and prints the requests of the meantime once", async () => {
    await using proxy = await startFaultProxy(world.api.server.port);
    const args = ["logs", "logged-shop", "--json", "--filter=path:/gap/"];
    const connection = ["--server", proxy.url, "--token-file", "TOKEN"];
    await using logs = await runAgent([...args, ...connection], { token });
    await logs.event("ready");
    await shop.visit("/gap/before");
    await waitForPath(logs, "/gap/before");
    proxy.cut();
    await logs.event("disconnected");
    await shop.visit("/gap/during");
    await logs.event("reconnected");
    await waitForPath(logs, "/gap/during");
    await shop.visit("/gap/after");
    await waitForPath(logs, "/gap/after");
    const paths = parseRequests(logs.stdout).map(({ path }) => path);
    expect(paths).toEqual(["/gap/before", "/gap/during", "/gap/after"]);
    expect(logs.stdout.match(/"event":"disconnected"/g)).toHaveLength(1);
  });

  test("ends with 1 when its token is revoked", async () => {
    const { wireBytes, nonce } = await mintToken(world.owner);
    await using logs = await runAgent(share("--json"), { token: Buffer.from(wireBytes, "base64") });
    await logs.event("ready");
    await world.owner.delete(`/tokens/${nonce}`);
    expect(await logs.event("rejected")).toMatchObject({ reason: "unauthorized" });
    expect(await logs.exit).toBe(1);
  });

  test.each([
    ["stauts:500", "there is no field stauts; the fields are method, status,"],
    ["query:a=1", "a capability token does not give access to queries"],
  ])("says what is wrong with the filter %s, with exit code 2", async (filter, message) => {
    const { code, stderr } = await runToEnd(share("--filter", filter), { token });
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  test.runIf(canOpenTerminals())("fits each request into one line of a terminal", async () => {
    const path = `/wide/${"w".repeat(300)}`;
    await shop.visit(path);
    await waitForCaptures(world.owner, { path }, 1);
    const cwd = await createTemporaryDir();
    const env = { HOME: cwd, UNDERPASS_ACCESS_TOKEN: world.owner.accessToken };
    const script = join(ROOT, "agent/bin/launch.js");
    const command = `${process.execPath} ${script} logs --limit 1 --filter=path:/wide/ --server ${world.api.server.url}`;
    await using typed = typeCommand(command, { cwd, env, atTerminal: true });
    expect(await typed.exit).toBe(0);
    const [line] = typed.output.trim().split("\n");
    expect(line).toMatch(/^\d\d:\d\d:\d\d {2}GET .* 200 .* logged-shop .*\/wide\/w+…$/);
    expect(line!.length).toBeLessThanOrEqual(120);
  });
});
