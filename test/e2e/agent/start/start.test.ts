/** `underpass start`: several tunnels of one file in one process, and what happens when the file changes. */
import { mkdir, rename, symlink, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { dirname, join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { useTunnelFile } from "../../../harness/agent/tunnel-file.ts";
import { startTcpStack } from "../../../harness/relay/tcp/stack.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { runAgent, runToEnd, type RunningAgent } from "../../../harness/tunnel/agent.ts";

/** Responses to /download, which the test continues. */
const downloads: ServerResponse[] = [];
beforeEach(() => void (downloads.length = 0));

const file = useTunnelFile(
  () => startTcpStack({ address: "127.0.0.1", ports: 10 }),
  (request, response) => {
    if (request.url !== "/download") return void response.end(`host ${request.headers.host}`);
    downloads.push(response);
    response.write("first half, ");
  },
);

/** An entry that leads to the local server of this file. */
const entry = (name: string, more = "") =>
  `  ${name}: {local: ${file.port}, subdomain: ${name}${more}}`;

const start = (args: string[], env: Record<string, string> = {}) =>
  runAgent(["start", "--config", file.path, "--token-file", "TOKEN", ...args], {
    token: file.stack.token,
    env,
  });

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
  await file.write([
    entry("start-web"),
    entry("start-api", ", host_header: inner.example"),
    `  db: {local: ${file.port}, protocol: tcp}`,
  ]);
  await using agent = await start(["--all", "--json"]);
  await waitForTunnels(agent, "ready", ["start-web", "start-api", "db"]);
  expect((await file.visit("start-web")).body.toString()).toBe(`host start-web.localhost`);
  expect((await file.visit("start-api")).body.toString()).toBe("host inner.example");
  const { publicPort } = listEvents(agent, "ready").find(({ tunnel }) => tunnel === "db")!;
  const answer = await fetch(`http://127.0.0.1:${String(publicPort)}/`);
  expect(await answer.text()).toBe(`host 127.0.0.1:${String(publicPort)}`);
  await waitForTunnels(agent, "request", ["start-web", "start-api"]);
  agent.child.kill("SIGTERM");
  expect(await agent.exit).toBe(0);
});

test("without --json each line names its tunnel", async () => {
  await file.write([entry("start-lines"), entry("start-other")]);
  await using agent = await start(["--all"]);
  await expect.poll(() => agent.stdout, WAIT_OPTIONS).toContain("[start-lines] Forwarding http://");
  await expect.poll(() => agent.stdout, WAIT_OPTIONS).toContain("[start-other] Forwarding http://");
  await file.visit("start-other", "/menu");
  await expect.poll(() => agent.stdout, WAIT_OPTIONS).toMatch(/ \[start-other\] 200 GET \/menu /m);
});

test("names choose tunnels, and the only tunnel of a file needs no name", async () => {
  await file.write([entry("start-first"), entry("start-second")]);
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
  await file.write([entry("start-only")]);
  await using only = await start(["--json"]);
  await waitForTunnels(only, "ready", ["start-only"]);
});

test("a tunnel that the server rejects does not end the others; when all are rejected, the exit code is 1", async () => {
  await file.write([entry("start-kept"), entry("start-gone", ", project: nowhere")]);
  await using agent = await start(["--all", "--json"]);
  await waitForTunnels(agent, "ready", ["start-kept"]);
  await waitForTunnels(agent, "rejected", ["start-gone"]);
  expect((await file.visit("start-kept")).status).toBe(200);
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
    await file.write([entry(kept), entry(changed), entry(removed)]);
    await using agent = await start(["--all", "--json"]);
    await waitForTunnels(agent, "ready", [kept, changed, removed]);
    const download = file.visit(kept, "/download");
    await expect.poll(() => downloads.length, WAIT_OPTIONS).toBe(1);

    const next = [entry(added), entry(changed, ", host_header: other.example"), entry(kept)];
    if (way === "a rename over the file") {
      const swap = join(file.directory, ".underpass.yml.swp");
      await file.write(next, swap);
      await rename(swap, file.path);
    } else await file.write(next);
    if (way === "SIGHUP") agent.child.kill("SIGHUP");
    expect(await agent.event("reloaded")).toEqual({
      event: "reloaded",
      opened: [added],
      reopened: [changed],
      closed: [removed],
    });
    await waitForTunnels(agent, "ready", [kept, changed, removed, changed, added]);
    await waitForTunnels(agent, "closed", [changed, removed]);
    expect((await file.visit(changed)).body.toString()).toBe("host other.example");
    expect((await file.visit(added)).status).toBe(200);
    expect((await file.visit(removed)).status).toBe(502);
    downloads[0]!.end("second half");
    expect((await download).body.toString()).toBe("first half, second half");
  },
);

test("a policy file that has changed is applied on SIGHUP, and the tunnels of unchanged files stay", async () => {
  const policy = join(file.directory, "policy.yml");
  await mkdir(join(file.directory, "public"));
  await writeFile(policy, "actions: []");
  await file.write([
    entry("policy-changed", ", policy: policy.yml"),
    "  policy-other: {local: public, subdomain: policy-other}",
  ]);
  await using agent = await start(["--all", "--json"]);
  await waitForTunnels(agent, "ready", ["policy-changed", "policy-other"]);
  expect((await file.visit("policy-changed")).status).toBe(200);
  await writeFile(policy, "actions: [{kind: deny, path_prefix: /}]");
  agent.child.kill("SIGHUP");
  expect(await agent.event("reloaded")).toMatchObject({
    opened: [],
    reopened: ["policy-changed"],
    closed: [],
  });
  await waitForTunnels(agent, "ready", ["policy-changed", "policy-other", "policy-changed"]);
  expect((await file.visit("policy-changed")).status).toBe(403);
});

test("a change of the file that a link leads to is followed, and so is a change of the link", async () => {
  const settings = join(file.directory, "settings");
  const [first, second] = [join(settings, "first.yml"), join(settings, "second.yml")];
  await mkdir(settings);
  await file.write([entry("link-first")], first);
  await symlink(first, file.path);
  await using agent = await start(["--all", "--json"]);
  await waitForTunnels(agent, "ready", ["link-first"]);
  await file.write([entry("link-first"), entry("link-edited")], first);
  await waitForTunnels(agent, "ready", ["link-first", "link-edited"]);
  await file.write([entry("link-second")], second);
  await symlink(second, `${file.path}.new`);
  await rename(`${file.path}.new`, file.path);
  await waitForTunnels(agent, "ready", ["link-first", "link-edited", "link-second"]);
  await waitForTunnels(agent, "closed", ["link-first", "link-edited"]);
  await file.write([entry("link-second"), entry("link-last")], second);
  await waitForTunnels(agent, "ready", ["link-first", "link-edited", "link-second", "link-last"]);
});

test("the path of shared files starts at the directory of the file, not at the current one", async () => {
  await mkdir(join(file.directory, "public"));
  await writeFile(join(file.directory, "public/index.html"), "shared page");
  await file.write([
    "  plain: {local: public, subdomain: start-plain}",
    "  dotted: {local: ./public, subdomain: start-dotted}",
  ]);
  await using agent = await start(["--all", "--json"]);
  await waitForTunnels(agent, "ready", ["plain", "dotted"]);
  expect((await file.visit("start-plain")).body.toString()).toBe("shared page");
  expect((await file.visit("start-dotted")).body.toString()).toBe("shared page");
});

test("--check names the tunnels of a valid file, or its problems and those of its policy files, without a token", async () => {
  await file.write([entry("start-checked", ", policy: deny.yml")]);
  const policy = join(dirname(file.path), "deny.yml");
  await writeFile(policy, "actions: [{kind: denyy}]");
  const check = () => runToEnd(["start", "--check", "--config", file.path]);
  const invalid = await check();
  expect(invalid.code).toBe(2);
  expect(invalid.stderr).toMatch(/deny\.yml:1:18: kind must be one of/);
  await writeFile(policy, "actions: []");
  expect(await check()).toMatchObject({
    code: 0,
    stdout: `${file.path} is valid: start-checked\n`,
  });
});

test("an invalid file changes nothing at a reload, and its problems are printed", async () => {
  await file.write([entry("start-stays")]);
  await using agent = await start(["--all", "--json"]);
  await agent.event("ready");
  await file.write(["  start-stays: {local: nothing here}"]);
  const { message } = (await agent.event("reload_failed")) as { message: string };
  expect(message).toMatch(
    /^\S+underpass\.yml:4:24: .*nothing here is not a port.*\nthe tunnels stay as they are$/,
  );
  expect((await file.visit("start-stays")).status).toBe(200);
  await file.write([entry("start-stays"), entry("start-fixed")]);
  expect(await agent.event("reloaded")).toMatchObject({ opened: ["start-fixed"], reopened: [] });
});

test("an invalid file is reported while a tunnel still finishes the requests of an earlier change", async () => {
  await file.write([entry("start-busy")]);
  await using agent = await start(["--all", "--json"]);
  await agent.event("ready");
  const download = file.visit("start-busy", "/download");
  await expect.poll(() => downloads.length, WAIT_OPTIONS).toBe(1);
  await file.write([entry("start-busy", ", host_header: other.example"), entry("start-next")]);
  await waitForTunnels(agent, "ready", ["start-busy", "start-next"]);
  await file.write(["  start-busy: {local: nothing here}"]);
  await agent.event("reload_failed");
  expect(listEvents(agent, "reloaded")).toEqual([]);
  downloads[0]!.end("second half");
  expect((await download).body.toString()).toBe("first half, second half");
  expect(await agent.event("reloaded")).toMatchObject({
    opened: ["start-next"],
    reopened: ["start-busy"],
  });
});

test("a tunnel with a random name keeps its URL when its options change", async () => {
  await file.write([`  web: {local: ${file.port}}`]);
  await using agent = await start(["--json"]);
  const { url } = await agent.event("ready");
  await file.write([`  web: {local: ${file.port}, host_header: other.example}`]);
  await waitForTunnels(agent, "ready", ["web", "web"]);
  expect(listEvents(agent, "ready").map((ready) => ready.url)).toEqual([url, url]);
});

test("a tunnel whose URL changes is served at the new one", async () => {
  await file.write([`  web: {local: ${file.port}, url: start-url.localhost}`]);
  await using agent = await start(["--json"]);
  await agent.event("ready");
  await file.write([`  web: {local: ${file.port}, url: start-moved.localhost}`]);
  await waitForTunnels(agent, "ready", ["web", "web"]);
  expect((await file.visit("start-moved")).body.toString()).toBe("host start-moved.localhost");
});

test("variables of the environment are replaced", async () => {
  await file.write(['  web: {local: "${PORT}", subdomain: "${NAME:-start-default}"}']);
  await using agent = await start(["--json"], { PORT: String(file.port) });
  expect(await agent.event("ready")).toMatchObject({ local: `http://localhost:${file.port}` });
  expect((await file.visit("start-default")).status).toBe(200);
  await using failed = await start([]);
  expect(await failed.exit).toBe(2);
  expect(failed.stderr).toMatch(/underpass\.yml:4:17: the environment variable PORT is not set/);
  expect(failed.stdout).toBe("");
});

test("the file is found in the parent directories, up to the root of the repository", async () => {
  await using agent = await runAgent(["start"], { token: file.stack.token });
  expect(await agent.exit).toBe(2);
  expect(agent.stderr).toMatch(
    /^underpass: there is no underpass\.yml in .* or above it; create one/,
  );
});
