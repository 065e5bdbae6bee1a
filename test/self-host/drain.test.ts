/** Stopping and killing a server while an agent is connected and visitors send requests. */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { Agent, createServer, request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { ERROR_HEADER } from "../../protocol/errors.ts";
import type { Tunnel } from "../../protocol/schemas/tunnels/tunnels.ts";
import { getCommandLine } from "../../self-host/processes/processes.ts";
import { createPreparedDir } from "../harness/directories.ts";
import { fastClock, speedUp } from "../harness/preloads/fast-clock.ts";
import { mintToken, startApi, waitUntil, type Person } from "../harness/server/api.ts";
import { startServer, type TestServer } from "../harness/server/server.ts";
import { WAIT_OPTIONS } from "../harness/timeouts.ts";
import { runAgent, type RunningAgent } from "../harness/tunnel/agent.ts";
import { requestCounterReport } from "../harness/tunnel/counter-report.ts";

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
/** The limits of a stop take a tenth of their time. */
const CLOCK_SPEED = 10;

let shop: Shop;
beforeAll(async () => {
  shop = await openShop();
});
beforeEach(() => shop.startIfStopped());
afterAll(() => shop?.[Symbol.asyncDispose]());

test("a stop lets requests in flight finish and notifies the agent, which reconnects at the next start", async () => {
  await using agent = await shop.startAgent();
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
  expect((await agent.event("disconnected")).reason).toContain("the server is restarting");
  expect(await stopped).toBe(0);

  await shop.startIfStopped();
  await agent.event("reconnected");
  expect(await text(await shop.visit("/"))).toBe(HELLO);
  expect(await shop.rows()).toEqual(rows);
});

// The Worker's own limit of ten seconds is tested inside workerd.
test("an endless response does not prevent a stop", async () => {
  await using _agent = await shop.startAgent();
  const endless = await shop.visit("/endless");
  const cut = text(endless).then(
    () => "cut",
    () => "cut",
  );
  const stopped = shop.server.stop("SIGTERM");
  await waitUntil(() => Promise.resolve(shop.server.output.includes("stopping: ")));
  speedUp(await shop.server.getPid("server"));
  expect(await stopped).toBe(0);
  expect(shop.server.output).toContain("draining: ");
  expect(await cut).toBe("cut");
});

test("a second SIGTERM immediately stops a server that waits for requests, with all its children", async () => {
  await using _agent = await shop.startAgent();
  const endless = await shop.visit("/endless");
  endless.on("error", () => undefined).resume();
  const parts = [await shop.server.getPid("workerd"), await shop.server.getPid("postgres")];
  const server = await shop.server.getPid("server");
  let code: number | null | undefined;
  void shop.server.stop("SIGTERM").then((exited) => (code = exited));
  await waitUntil(() => Promise.resolve(shop.server.output.includes("stopping: ")));
  // A second signal within a second after the first is the copy that npm forwards, and changes nothing.
  speedUp(server);
  await vi.waitUntil(() => {
    if (code === undefined) process.kill(server, "SIGTERM");
    return code !== undefined;
  }, WAIT_OPTIONS);
  // A server that waits for the response exits with 0.
  expect(code).toBe(1);
  await waitUntil(() => Promise.resolve(parts.every((pid) => getCommandLine(pid) === undefined)));
});

test("after a kill -9 of workerd under load, the service continues and no confirmed change is lost", async () => {
  await using agent = await shop.startAgent();
  const { tunnelId } = await agent.event("ready");
  const rows = await shop.rows();
  const load = startLoad(shop);
  const before = await shop.usageAbove(String(tunnelId), { totalRequests: 0, bytesOut: 0 });

  const killedAt = performance.now();
  process.kill(await shop.server.getPid("workerd"), "SIGKILL");
  await waitUntil(() => Promise.resolve(shop.server.output.includes("workerd was restarted")));
  const backAt = performance.now();
  await agent.event("reconnected");
  await shop.usageAbove(String(tunnelId), before);
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
  /** Runs an agent of the tunnel `shop`, and waits until it serves. */
  startAgent(): Promise<RunningAgent>;
  visit(path: string, connections?: Agent): Promise<IncomingMessage>;
  /** Starts the server again on the same directory and port. */
  startIfStopped(): Promise<void>;
  /** The keys of the rows in each table. */
  rows(): Promise<Record<string, string[]>>;
  /** Waits until the API reports more than that. Its counters must never decrease. */
  usageAbove(tunnelId: string, least: Usage): Promise<Usage>;
}

/** A server with an account, whose clock can be sped up, and a local server. */
async function openShop(): Promise<Shop> {
  const dataDir = await createPreparedDir();
  const env = fastClock(CLOCK_SPEED);
  const api = await startApi({ dataDir, env });
  const owner = await api.owner();
  const local = await startLocalServer();
  const token = Buffer.from((await mintToken(owner)).wireBytes, "base64");
  let server = api.server;
  const { port, url } = server;

  return {
    get server() {
      return server;
    },
    local,
    async startAgent() {
      const options = ["--server", url, "--token-file", "TOKEN", "--subdomain", "shop", "--json"];
      const agent = await runAgent(["http", String(local.port), ...options], { token });
      await agent.event("ready");
      return agent;
    },
    visit: (path, connections) => visit(port, path, connections),
    async startIfStopped() {
      if (getCommandLine(await server.getPid("server")) !== undefined) return;
      server = await startServer({ dataDir, env: { ...env, PORT: String(port) } });
    },
    rows: () => readKeys(server),
    usageAbove: (tunnelId, least) => usageAbove(owner, tunnelId, least),
    async [Symbol.asyncDispose]() {
      await server.stop();
      await api.stop();
      await local.stop();
      await rm(dataDir, { recursive: true });
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

async function usageAbove(owner: Person, tunnelId: string, least: Usage): Promise<Usage> {
  let last = least;
  return waitUntil(async () => {
    await requestCounterReport(owner, tunnelId).catch(() => undefined);
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
/** Each visitor's, between a response and the next request: the load leaves the machine to other tests, too. */
const PAUSE_MS = 10;

/** Visitors who send one request after the other. */
function startLoad(shop: Shop): { stop(): Promise<Outcome[]> } {
  const connections = new Agent({ keepAlive: true, maxSockets: VISITORS });
  const outcomes: Outcome[] = [];
  let isStopped = false;
  const visitors = Array.from({ length: VISITORS }, async () => {
    while (!isStopped) {
      const startedAt = performance.now();
      const got = await readOutcome(shop.visit("/", connections));
      outcomes.push({ got, startedAt, endedAt: performance.now() });
      await wait(PAUSE_MS);
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
