/** Several agents of one tunnel: real agents, local servers that count, and visitors without a pause. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { expose, type ExposedTunnel } from "../../../agent/expose.ts";
import type { TunnelAgent } from "../../../protocol/schemas/tunnels/connections.ts";
import { runAgent, runToEnd } from "../../harness/tunnel/agent.ts";
import {
  mintToken,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import { exchange } from "../../harness/tunnel/raw-http.ts";

/** Visitors that send a request as soon as they have the answer to the one before. */
const VISITORS = 8;

let api: TestApi;
let owner: Person;
let token: Buffer;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
  token = Buffer.from((await mintToken(owner)).wireBytes, "base64");
});
afterAll(() => api.stop());

const command = (port: number, name: string, ...more: string[]) => [
  ...["http", String(port), "--server", api.server.url, "--token-file", "TOKEN"],
  ...["--name", name, "--json", ...more],
];

function visit(name: string, path = "/", method = "GET", body = "") {
  const length = `Content-Length: ${body.length}\r\n`;
  const headers = `Host: ${name}.localhost\r\n${method === "GET" ? "" : length}`;
  return exchange(api.server.port, `${method} ${path} HTTP/1.1\r\n${headers}\r\n${body}`);
}

function join(name: string, fetch: () => Response): Promise<ExposedTunnel> {
  return expose({ server: api.server.url, token, subdomain: name, pool: true, fetch });
}

interface Outcome {
  id: number;
  method: "GET" | "POST";
  /** 0: the connection broke. */
  status: number;
  /** Whether the request began when the fault was over. */
  isAfterFault: boolean;
}

/** Sends requests from several visitors while `cause` runs, and for some time before and after. */
async function visitDuring(name: string, cause: () => Promise<unknown>): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  let next = 0;
  let isOver = false;
  let isStopped = false;
  const visitor = async (): Promise<void> => {
    while (!isStopped) {
      const id = ++next;
      const method = id % 2 === 0 ? "GET" : "POST";
      const isAfterFault = isOver;
      const body = method === "POST" ? "an order" : "";
      const status = await visit(name, `/${id}`, method, body).then(
        (answer) => answer.status,
        () => 0,
      );
      outcomes.push({ id, method, status, isAfterFault });
    }
  };
  const visitors = Promise.all(Array.from({ length: VISITORS }, visitor));
  const hasVisits = (count: number, from = 0) =>
    waitUntil(() => Promise.resolve(outcomes.length - from >= count));
  await hasVisits(100);
  await cause();
  isOver = true;
  await hasVisits(200, outcomes.length);
  isStopped = true;
  await visitors;
  return outcomes;
}

/** How often each POST reached a local server. */
function countPosts(origins: RawOrigin[]): number[] {
  const counts = new Map<string, number>();
  for (const { method, target } of origins.flatMap(({ requests }) => requests)) {
    if (method === "POST") counts.set(target, (counts.get(target) ?? 0) + 1);
  }
  return [...counts.values()];
}

test("an agent that is killed under load loses at most what is in flight, and no POST arrives twice", async () => {
  const origins = await Promise.all([startRawOrigin(), startRawOrigin()]);
  const [one, other] = origins;
  await using staying = await runAgent(command(one.port, "pool-killed", "--pool"), { token });
  await staying.event("ready");
  await using killed = await runAgent(command(other.port, "pool-killed", "--pool"), { token });
  await killed.event("ready");
  const outcomes = await visitDuring("pool-killed", async () => {
    await waitUntil(() => Promise.resolve(other.requests.length > 10));
    killed.child.kill("SIGKILL");
    await killed.exit;
  });
  expect(one.requests.length).toBeGreaterThan(10);
  const failed = outcomes.filter(({ status }) => status !== 200);
  expect(failed.filter(({ isAfterFault }) => isAfterFault)).toEqual([]);
  // A GET in flight was sent again to the other agent.
  expect(failed.filter(({ method }) => method === "GET")).toEqual([]);
  expect(failed.length).toBeLessThanOrEqual(VISITORS);
  expect(countPosts(origins).every((count) => count === 1)).toBe(true);
  await Promise.all(origins.map((origin) => origin.stop()));
});

test("an agent that leaves under load finishes its requests: none fails, and each arrives once", async () => {
  const origins = await Promise.all([startRawOrigin(), startRawOrigin()]);
  const [one, other] = origins;
  await using staying = await runAgent(command(one.port, "pool-leaving", "--pool"), { token });
  await staying.event("ready");
  await using leaving = await runAgent(command(other.port, "pool-leaving", "--pool"), { token });
  await leaving.event("ready");
  const outcomes = await visitDuring("pool-leaving", async () => {
    await waitUntil(() => Promise.resolve(other.requests.length > 10));
    leaving.child.kill("SIGINT");
    expect(await leaving.exit).toBe(0);
  });
  expect(outcomes.filter(({ status }) => status !== 200)).toEqual([]);
  expect(countPosts(origins).every((count) => count === 1)).toBe(true);
  await Promise.all(origins.map((origin) => origin.stop()));
});

test("an agent whose local server is gone is passed over until it is back", async () => {
  const [one, other] = await Promise.all([startRawOrigin(), startRawOrigin()]);
  await using healthy = await runAgent(command(one.port, "pool-health", "--pool"), { token });
  await healthy.event("ready");
  await using broken = await runAgent(command(other.port, "pool-health", "--pool"), { token });
  await broken.event("ready");
  await waitUntil(async () => {
    await visit("pool-health");
    return other.requests.length > 0;
  });
  await other.stop();
  const { tunnelId } = await healthy.event("ready");
  // Also the request that finds the server gone is answered: nothing was sent to it.
  for (let at = 0; at < 10; at++) expect((await visit("pool-health")).status).toBe(200);
  const requests = one.requests.length;
  for (let at = 0; at < 10; at++) {
    expect((await visit("pool-health", "/", "POST", "an order")).status).toBe(200);
  }
  expect(one.requests).toHaveLength(requests + 10);
  const { body: agents } = await owner.get<TunnelAgent[]>(`/tunnels/${tunnelId as string}/agents`);
  expect(agents.map((agent) => agent.healthy)).toEqual([true, false]);
});

test("an agent that joins gets requests at once, and each agent learns how many there are", async () => {
  const served = { one: 0, other: 0 };
  await using first = await join("pool-joining", () => new Response(`one ${++served.one}`));
  const sizes: number[] = [];
  first.events.on("pool", (agents) => sizes.push(agents));
  await visit("pool-joining");
  const second = await join("pool-joining", () => new Response(`other ${++served.other}`));
  for (let at = 0; at < 4; at++) await visit("pool-joining");
  expect(served).toEqual({ one: 3, other: 2 });
  await second.close();
  await waitUntil(() => Promise.resolve(sizes.at(-1) === 1));
  expect(sizes).toContain(2);
  for (let at = 0; at < 4; at++) expect((await visit("pool-joining")).status).toBe(200);
  expect(served).toEqual({ one: 7, other: 2 });
});

test("the connections of all agents are listed, and each can be ended", async () => {
  await using first = await join("pool-listed", () => new Response("one"));
  await using second = await join("pool-listed", () => new Response("other"));
  const list = async () => {
    const { body } = await owner.get<{ agent_id: string; tunnels: string[] }[]>("/connections");
    return body.filter(({ tunnels }) => tunnels.includes(first.tunnelId));
  };
  expect(second.tunnelId).toBe(first.tunnelId);
  await waitUntil(async () => (await list()).length === 2);
  const { body: agents } = await owner.get<TunnelAgent[]>(`/tunnels/${first.tunnelId}/agents`);
  const idle = { remote_ip: "127.0.0.1", in_flight: 0, healthy: true };
  expect(agents).toMatchObject([idle, idle]);
  const [newest] = await list();
  expect((await owner.delete(`/connections/${newest!.agent_id}`)).status).toBe(200);
  expect(await list()).toHaveLength(1);
  expect((await visit("pool-listed")).status).toBe(200);
});

test("over several objects, both agents serve at each of them", async () => {
  const served = new Set<string>();
  await using first = await join("pool-shards", () => new Response(`${served.add("one").size}`));
  await using _ = await join("pool-shards", () => new Response(`${served.add("other").size}`));
  const path = `/tunnels/${first.tunnelId}/shards`;
  expect((await owner.put(path, { shards: 3 })).status).toBe(200);
  await waitUntil(async () => {
    expect((await visit("pool-shards")).status).toBe(200);
    return served.size === 2;
  });
});

test("an agent without --pool is refused while a pool serves, and one with it needs a name", async () => {
  await using _ = await join("pool-refused", () => new Response("pool"));
  const alone = await runToEnd(command(3000, "pool-refused"), { token });
  expect(alone.code).not.toBe(0);
  expect(alone.stdout + alone.stderr).toMatch(/start this agent with --pool too/);
  const nameless = await runToEnd(["http", "3000", "--pool"], { token });
  expect(nameless.code).toBe(2);
  expect(nameless.stderr).toMatch(/--pool needs --subdomain or --url/);
});
