/** `underpass start`: several tunnels of one file in one process, and what happens when the file changes. */
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { startTcpStack, type TcpStack } from "../../../harness/relay/tcp/stack.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { runAgent, type RunningAgent } from "../../../harness/tunnel/agent.ts";
import { exchange } from "../../../harness/tunnel/raw-http.ts";

let stack: TcpStack;
let directory: string;
let file: string;
/** Responses to /download, which the test continues. */
const downloads: ServerResponse[] = [];
let site: Server;
let port: number;

beforeAll(async () => {
  site = createServer((request, response) => {
    if (request.url !== "/download") return void response.end(`host ${request.headers.host}`);
    downloads.push(response);
    response.write("first half, ");
  });
  site.listen(0, "127.0.0.1");
  [stack] = await Promise.all([
    startTcpStack({ address: "127.0.0.1", ports: 10 }),
    once(site, "listening"),
  ]);
  port = (site.address() as AddressInfo).port;
});
afterAll(async () => {
  site.closeAllConnections();
  site.close();
  await stack[Symbol.asyncDispose]();
});
beforeEach(async () => {
  directory = await createTemporaryDir();
  file = join(directory, "underpass.yml");
  downloads.length = 0;
  return () => rm(directory, { recursive: true, force: true });
});

/** Writes the file. @param tunnels lines of the mapping `tunnels`. */
const write = (...tunnels: string[]) =>
  writeFile(
    file,
    ["version: 1", `server: ${stack.api.server.url}`, "tunnels:", ...tunnels, ""].join("\n"),
  );

/** An entry that leads to the local server of this file. */
const entry = (name: string, more = "") => `  ${name}: {local: ${port}, subdomain: ${name}${more}}`;

const start = (args: string[], env: Record<string, string> = {}) =>
  runAgent(["start", "--config", file, "--token-file", "TOKEN", ...args], {
    token: stack.token,
    env,
  });

const visit = (subdomain: string, path = "/") =>
  exchange(stack.api.server.port, `GET ${path} HTTP/1.1\r\nHost: ${subdomain}.localhost\r\n\r\n`);

interface Event {
  event: string;
  tunnel?: string;
  [field: string]: unknown;
}

const listEvents = (agent: RunningAgent, name: string): Event[] =>
  agent.stdout
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line) as Event)
    .filter(({ event }) => event === name);

/** Waits until the event has been printed for exactly these tunnels, one by one. */
const waitForTunnels = (agent: RunningAgent, event: string, tunnels: string[]) =>
  expect
    .poll(
      () =>
        listEvents(agent, event)
          .map(({ tunnel }) => tunnel)
          .sort(),
      WAIT_OPTIONS,
    )
    .toEqual([...tunnels].sort());

test("one process serves HTTP and TCP tunnels, and each event has the name of its tunnel", async () => {
  await write(
    entry("start-web"),
    entry("start-api", ", host_header: inner.example"),
    `  db: {local: ${port}, protocol: tcp}`,
  );
  await using agent = await start(["--all", "--json"]);
  await waitForTunnels(agent, "ready", ["start-web", "start-api", "db"]);
  expect((await visit("start-web")).body.toString()).toBe(`host start-web.localhost`);
  expect((await visit("start-api")).body.toString()).toBe("host inner.example");
  const { publicPort } = listEvents(agent, "ready").find(({ tunnel }) => tunnel === "db")!;
  const answer = await fetch(`http://127.0.0.1:${String(publicPort)}/`);
  expect(await answer.text()).toBe(`host 127.0.0.1:${String(publicPort)}`);
  await waitForTunnels(agent, "request", ["start-web", "start-api"]);
  agent.child.kill("SIGTERM");
  expect(await agent.exit).toBe(0);
});

test("without --json each line starts with the name of its tunnel", async () => {
  await write(entry("start-lines"), entry("start-other"));
  await using agent = await start(["--all"]);
  await expect.poll(() => agent.stdout, WAIT_OPTIONS).toContain("[start-lines] Forwarding http://");
  await expect.poll(() => agent.stdout, WAIT_OPTIONS).toContain("[start-other] Forwarding http://");
  await visit("start-other", "/menu");
  await expect.poll(() => agent.stdout, WAIT_OPTIONS).toMatch(/^\[start-other\] 200 GET \/menu /m);
});

test("names choose tunnels, and an only one needs no name", async () => {
  await write(entry("start-first"), entry("start-second"));
  await using agent = await start(["start-second", "--json"]);
  await waitForTunnels(agent, "ready", ["start-second"]);
  await using unclear = await start([]);
  expect(await unclear.exit).toBe(2);
  expect(unclear.stderr).toContain(
    "name the tunnels, or use --all; the file has start-first, start-second",
  );
  await using misspelled = await start(["start-secand"]);
  expect(await misspelled.exit).toBe(2);
  expect(misspelled.stderr).toContain("did you mean start-second?");
  await write(entry("start-only"));
  await using only = await start(["--json"]);
  await waitForTunnels(only, "ready", ["start-only"]);
});

test("a tunnel that the server rejects does not end the others; when all are rejected, the exit code is 1", async () => {
  await write(entry("start-kept"), entry("start-gone", ", project: nowhere"));
  await using agent = await start(["--all", "--json"]);
  await waitForTunnels(agent, "ready", ["start-kept"]);
  await waitForTunnels(agent, "rejected", ["start-gone"]);
  expect((await visit("start-kept")).status).toBe(200);
  await using rejected = await start(["start-gone"]);
  expect(await rejected.exit).toBe(1);
  expect(rejected.stderr).toContain("start-gone: ");
  expect(rejected.stderr).toContain("the server has rejected all of them");
});

test.each(["SIGHUP", "a change of the file", "a rename over the file"])(
  "%s opens, reopens and closes the tunnels that differ, and a download of another one goes on",
  async (way) => {
    const id = ["SIGHUP", "a change of the file", "a rename over the file"].indexOf(way);
    const [kept, changed, removed, added] = ["kept", "changed", "removed", "added"].map(
      (name) => `reload${id}-${name}`,
    ) as [string, string, string, string];
    await write(entry(kept), entry(changed), entry(removed));
    await using agent = await start(["--all", "--json"]);
    await waitForTunnels(agent, "ready", [kept, changed, removed]);
    const download = visit(kept, "/download");
    await expect.poll(() => downloads.length, WAIT_OPTIONS).toBe(1);

    const next = [entry(added), entry(changed, ", host_header: other.example"), entry(kept)];
    if (way === "a rename over the file") {
      const final = file;
      file = join(directory, ".underpass.yml.swp");
      await write(...next);
      await rename(file, final);
    } else await write(...next);
    if (way === "SIGHUP") agent.child.kill("SIGHUP");
    expect(await agent.event("reloaded")).toEqual({
      event: "reloaded",
      opened: [added],
      reopened: [changed],
      closed: [removed],
    });
    await waitForTunnels(agent, "ready", [kept, changed, removed, changed, added]);
    await waitForTunnels(agent, "closed", [changed, removed]);
    expect((await visit(changed)).body.toString()).toBe("host other.example");
    expect((await visit(added)).status).toBe(200);
    expect((await visit(removed)).status).toBe(502);
    downloads[0]!.end("second half");
    expect((await download).body.toString()).toBe("first half, second half");
  },
);

test("a change of the file that a link leads to is followed, and so is a change of the link", async () => {
  const link = file;
  const settings = join(directory, "settings");
  await mkdir(settings);
  file = join(settings, "first.yml");
  await write(entry("link-first"));
  await symlink(file, link);
  const first = file;
  file = link;
  await using agent = await start(["--all", "--json"]);
  await waitForTunnels(agent, "ready", ["link-first"]);
  file = first;
  await write(entry("link-first"), entry("link-edited"));
  await waitForTunnels(agent, "ready", ["link-first", "link-edited"]);
  file = join(settings, "second.yml");
  await write(entry("link-second"));
  await symlink(file, `${link}.new`);
  await rename(`${link}.new`, link);
  await waitForTunnels(agent, "ready", ["link-first", "link-edited", "link-second"]);
  await waitForTunnels(agent, "closed", ["link-first", "link-edited"]);
  await write(entry("link-second"), entry("link-last"));
  await waitForTunnels(agent, "ready", ["link-first", "link-edited", "link-second", "link-last"]);
});

test("the path of shared files starts at the directory of the file, not at the current one", async () => {
  await mkdir(join(directory, "public"));
  await writeFile(join(directory, "public/index.html"), "shared page");
  await write(
    "  plain: {local: public, subdomain: start-plain}",
    "  dotted: {local: ./public, subdomain: start-dotted}",
  );
  await using agent = await start(["--all", "--json"]);
  await waitForTunnels(agent, "ready", ["plain", "dotted"]);
  expect((await visit("start-plain")).body.toString()).toBe("shared page");
  expect((await visit("start-dotted")).body.toString()).toBe("shared page");
});

test("an invalid file changes nothing at a reload, and its problems are printed", async () => {
  await write(entry("start-stays"));
  await using agent = await start(["--all", "--json"]);
  await agent.event("ready");
  await write("  start-stays: {local: nothing here}");
  const { message } = (await agent.event("reload_failed")) as { message: string };
  expect(message).toMatch(/underpass\.yml:4:24: .*nothing here is not a port/);
  expect((await visit("start-stays")).status).toBe(200);
  await write(entry("start-stays"), entry("start-fixed"));
  expect(await agent.event("reloaded")).toMatchObject({ opened: ["start-fixed"], reopened: [] });
});

test("a tunnel with a random name keeps its URL when its options change", async () => {
  await write(`  web: {local: ${port}}`);
  await using agent = await start(["--json"]);
  const { url } = await agent.event("ready");
  await write(`  web: {local: ${port}, host_header: other.example}`);
  await waitForTunnels(agent, "ready", ["web", "web"]);
  expect(listEvents(agent, "ready").map((ready) => ready.url)).toEqual([url, url]);
});

test("a tunnel whose URL changes is served at the new one", async () => {
  await write(`  web: {local: ${port}, url: start-url.localhost}`);
  await using agent = await start(["--json"]);
  await agent.event("ready");
  await write(`  web: {local: ${port}, url: start-moved.localhost}`);
  await waitForTunnels(agent, "ready", ["web", "web"]);
  expect((await visit("start-moved")).body.toString()).toBe("host start-moved.localhost");
});

test("variables of the environment are replaced", async () => {
  await write('  web: {local: "${PORT}", subdomain: "${NAME:-start-default}"}');
  await using agent = await start(["--json"], { PORT: String(port) });
  expect(await agent.event("ready")).toMatchObject({ local: `http://localhost:${port}` });
  expect((await visit("start-default")).status).toBe(200);
  await using failed = await start([]);
  expect(await failed.exit).toBe(1);
  expect(failed.stderr).toMatch(/underpass\.yml:4:17: the environment variable PORT is not set/);
  expect(failed.stdout).toBe("");
});

test("the file is found in the parent directories, up to the root of the repository", async () => {
  await using agent = await runAgent(["start"], { token: stack.token });
  expect(await agent.exit).toBe(1);
  expect(agent.stderr).toMatch(
    /^underpass: there is no underpass\.yml in .* or above it; create one/,
  );
});
