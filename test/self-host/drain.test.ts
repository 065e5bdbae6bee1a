/** Stopping and killing a server while an agent is connected and visitors send requests. */
import { once } from "node:events";
import { rm, writeFile } from "node:fs/promises";
import { Agent, createServer, request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import { expect, test } from "vitest";
import { ERROR_HEADER } from "../../protocol/errors.ts";
import { DRAIN_MAX_MS } from "../../protocol/limits.ts";
import type { Tunnel } from "../../protocol/schemas/tunnels/tunnels.ts";
import { ROOT } from "../../self-host/build/build.ts";
import { getCommandLine } from "../../self-host/processes/processes.ts";
import { mintToken, startApi, waitUntil, type Person } from "../harness/server/api.ts";
import { createPreparedDir } from "../harness/directories.ts";
import { startServer, type TestServer } from "../harness/server/server.ts";
import { WAIT_MAX_MS } from "../harness/timeouts.ts";
import { typeCommand, type TerminalCommand } from "../harness/terminal.ts";

const HELLO = "hello from the local server";
/** Tables whose rows must survive a crash, and their keys. */
const KEYS = {
  users: "id",
  organizations: "id",
  memberships: "user_id",
  sessions: "id",
  tokens: "id",
  tunnels: "id",
  hostnames: "host",
};

test("a stop lets requests in flight finish and notifies the agent, which reconnects at the next start", async () => {
  await using shop = await openShop();
  const rows = await shop.rows();
  const slow = await shop.visit("/slow");
  const stopped = shop.server.stop("SIGTERM");
  const refused = await waitUntil(async () => {
    const answer = await shop.visit("/");
    await text(answer);
    return answer.statusCode !== 200 && answer;
  });
  expect(refused.statusCode).toBe(503);
  expect(refused.headers).toMatchObject({ [ERROR_HEADER]: "unavailable", "retry-after": "5" });
  shop.local.release();
  expect(await text(slow)).toBe("begun, finished");
  const [, reason] = await shop.agent.waitForOutput(/"event":"disconnected","reason":"([^"]+)"/);
  expect(reason).toContain("the server restarts");
  expect(await stopped).toBe(0);

  await shop.startAgain();
  await shop.agent.waitForOutput(/"event":"reconnected"/);
  expect(await text(await shop.visit("/"))).toBe(HELLO);
  expect(await shop.rows()).toEqual(rows);
});

test("an endless response delays a stop for at most ten seconds", async () => {
  await using shop = await openShop();
  const endless = await shop.visit("/endless");
  const cut = text(endless).then(
    () => "cut",
    () => "cut",
  );
  const startedAt = performance.now();
  expect(await shop.server.stop("SIGTERM")).toBe(0);
  const tookMs = performance.now() - startedAt;
  expect(tookMs).toBeGreaterThan(DRAIN_MAX_MS - 500);
  expect(tookMs).toBeLessThan(DRAIN_MAX_MS + WAIT_MAX_MS);
  expect(await cut).toBe("cut");
});

test("a second SIGTERM immediately stops a server that waits for requests, with all its children", async () => {
  await using shop = await openShop();
  const endless = await shop.visit("/endless");
  endless.on("error", () => undefined).resume();
  const parts = [await shop.server.getPid("workerd"), await shop.server.getPid("postgres")];
  const stopped = shop.server.stop("SIGTERM");
  await waitUntil(() => Promise.resolve(shop.server.output.includes("stopping: ")));
  // A second signal right after the first is the copy that npm forwards.
  await wait(1_500);
  process.kill(await shop.server.getPid("server"), "SIGTERM");
  // A server that waits for the response exits with 0.
  expect(await stopped).toBe(1);
  await waitUntil(() => Promise.resolve(parts.every((pid) => getCommandLine(pid) === undefined)));
});

test("after a kill -9 of workerd under load, the service continues and no confirmed change is lost", async () => {
  await using shop = await openShop();
  const rows = await shop.rows();
  const load = startLoad(shop);
  const before = await shop.usageAbove({ totalRequests: 0, bytesOut: 0 });

  const killedAt = performance.now();
  process.kill(await shop.server.getPid("workerd"), "SIGKILL");
  await waitUntil(() => Promise.resolve(shop.server.output.includes("workerd was restarted")));
  const backAt = performance.now();
  await shop.agent.waitForOutput(/"event":"reconnected"/);
  await shop.usageAbove(before);
  const outcomes = await load.stop();

  const lost = outcomes.filter(({ got }) => got === "no connection" || got === "cut");
  for (const { startedAt, endedAt } of lost) {
    expect(startedAt).toBeLessThan(backAt);
    expect(endedAt).toBeGreaterThan(killedAt);
  }
  const kinds = Object.groupBy(outcomes, ({ got }) => got);
  const counts = Object.fromEntries(Object.entries(kinds).map(([k, v]) => [k, v?.length]));
  console.log(`workerd was away for ${Math.round(backAt - killedAt)} ms; visits:`, counts);
  expect(ALLOWED).toEqual(expect.arrayContaining(Object.keys(kinds)));
  expect(outcomes.at(-1)?.got).toBe("whole");
  expect(await shop.rows()).toEqual(rows);
});

const ALLOWED = ["whole", "502 agent_offline", "503 unavailable", "no connection", "cut"];

interface Usage {
  totalRequests: number;
  bytesOut: number;
}

interface Shop extends AsyncDisposable {
  server: TestServer;
  local: LocalServer;
  agent: TerminalCommand;
  visit(path: string, connections?: Agent): Promise<IncomingMessage>;
  /** Starts again on the same directory and port. */
  startAgain(): Promise<void>;
  /** The keys of the rows in each table. */
  rows(): Promise<Record<string, string[]>>;
  /** Waits until the API reports more than that. Its counters must never decrease. */
  usageAbove(least: Usage): Promise<Usage>;
}

/** A server with one tunnel, `shop`, whose agent runs in a process of its own. */
async function openShop(): Promise<Shop> {
  const dir = await createPreparedDir();
  const dataDir = join(dir, "data");
  const api = await startApi({ dataDir });
  const owner = await api.owner();
  const local = await startLocalServer();
  const { wireBytes } = await mintToken(owner);
  await writeFile(join(dir, "token"), Buffer.from(wireBytes, "base64"));
  const options = `--server ${api.server.url} --token-file token --subdomain shop --json`;
  const command = `node ${join(ROOT, "dist/agent/underpass.js")} http ${local.port} ${options}`;
  const agent = typeCommand(command, { cwd: dir, env: { HOME: dir } });
  await agent.waitForOutput(/"event":"ready"/);
  let server = api.server;
  const { port } = server;

  return {
    get server() {
      return server;
    },
    local,
    agent,
    visit: (path, connections) => visit(port, path, connections),
    async startAgain() {
      server = await startServer({ dataDir, env: { PORT: String(port) } });
    },
    rows: () => readKeys(server),
    usageAbove: (least) => usageAbove(owner, least),
    async [Symbol.asyncDispose]() {
      await agent.interrupt();
      await server.stop();
      await api.stop();
      await local.stop();
      await rm(dir, { recursive: true });
    },
  };
}

async function readKeys(server: TestServer): Promise<Record<string, string[]>> {
  const client = new pg.Client({ connectionString: await server.databaseUrl() });
  await client.connect();
  const lists = Object.entries(KEYS).map(
    ([table, key]) => `(select json_agg(${key} order by ${key}) from ${table}) as ${table}`,
  );
  const { rows } = await client.query<Record<string, string[]>>(`select ${lists.join()}`);
  await client.end();
  expect(Object.values(rows[0] ?? {})).not.toContain(null);
  return rows[0] ?? {};
}

async function usageAbove(owner: Person, least: Usage): Promise<Usage> {
  let last = least;
  return waitUntil(async () => {
    const reply = await owner.get<Tunnel[]>("/tunnels").catch(() => undefined);
    const tunnel = reply?.body[0];
    if (!tunnel) return undefined;
    const { totalRequests, bytesOut } = tunnel;
    expect(totalRequests).toBeGreaterThanOrEqual(last.totalRequests);
    expect(bytesOut).toBeGreaterThanOrEqual(last.bytesOut);
    last = { totalRequests, bytesOut };
    return totalRequests > least.totalRequests && bytesOut > least.bytesOut && last;
  });
}

interface LocalServer {
  port: number;
  /** Completes slow responses. */
  release(): void;
  stop(): Promise<void>;
}

async function startLocalServer(): Promise<LocalServer> {
  const released = Promise.withResolvers<void>();
  const server = createServer((request, answer) => {
    switch (request.url) {
      case "/slow":
        answer.write("begun, ");
        void released.promise.then(() => answer.end("finished"));
        return;
      case "/endless": {
        const more = (): void => void answer.write("more ");
        const timer = setInterval(more, 20);
        answer.on("close", () => clearInterval(timer));
        more();
        return;
      }
      default:
        answer.end(HELLO);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    release: released.resolve,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Resolves with the header of the response. */
function visit(port: number, path: string, connections?: Agent): Promise<IncomingMessage> {
  const headers = { host: `shop.localhost:${port}` };
  return new Promise((resolve, reject) => {
    request({ host: "127.0.0.1", port, path, headers, agent: connections ?? false })
      .on("response", resolve)
      .on("error", reject)
      .end();
  });
}

interface Outcome {
  got: string;
  startedAt: number;
  endedAt: number;
}

const VISITORS = 8;

/** Visitors that send the next request as soon as they have a response. */
function startLoad(shop: Shop): { stop(): Promise<Outcome[]> } {
  const connections = new Agent({ keepAlive: true, maxSockets: VISITORS });
  const outcomes: Outcome[] = [];
  let isStopped = false;
  const visitors = Array.from({ length: VISITORS }, async () => {
    while (!isStopped) {
      const startedAt = performance.now();
      const got = await readOutcome(shop.visit("/", connections));
      outcomes.push({ got, startedAt, endedAt: performance.now() });
      if (got === "no connection") await wait(10);
    }
  });
  return {
    async stop() {
      isStopped = true;
      await Promise.all(visitors);
      connections.destroy();
      return outcomes;
    },
  };
}

async function readOutcome(answering: Promise<IncomingMessage>): Promise<string> {
  let answer: IncomingMessage;
  try {
    answer = await answering;
  } catch {
    return "no connection";
  }
  const body = await text(answer).catch(() => undefined);
  if (body === undefined) return "cut";
  if (answer.statusCode === 200) return body === HELLO ? "whole" : `another body: ${body}`;
  return `${answer.statusCode} ${String(answer.headers[ERROR_HEADER])}`;
}
