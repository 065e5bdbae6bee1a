import { once } from "node:events";
import { createServer, request, Agent, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { ExposedTunnel } from "../../../agent/expose.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { createRandom, type Random } from "../../harness/random.ts";
import { startStack, type Stack } from "../../harness/server/stack.ts";

const REQUESTS = 1_000;
const CONCURRENCY = 64;
const NAMES = ["red", "blue"] as const;
const BODY_MAX_BYTES = 200_000;

let stack: Stack;
const sites: Server[] = [];
const tunnels: ExposedTunnel[] = [];
/** Requests that a site has received and not finished. */
let openRequests = 0;

/** Responds after `delay` with its name, the request's nonce and body, and the requested number of bytes. */
async function startSite(name: string): Promise<number> {
  const site = createServer((request, answer) => {
    openRequests += 1;
    answer.on("close", () => (openRequests -= 1));
    request.on("error", () => undefined);
    void (async () => {
      const { nonce = "", delay = "0", bytes = "0" } = request.headers as Record<string, string>;
      const body = await buffer(request);
      await wait(Number(delay));
      answer.writeHead(200, { site: name, nonce, received: body.toString("latin1", 0, 40) });
      answer.end(Buffer.alloc(Number(bytes), nonce));
    })().catch(() => request.destroy());
  });
  site.listen(0, "127.0.0.1");
  await once(site, "listening");
  sites.push(site);
  return (site.address() as AddressInfo).port;
}

beforeAll(async () => {
  stack = await startStack();
  for (const subdomain of NAMES)
    tunnels.push(await stack.expose({ port: await startSite(subdomain), subdomain }));
});
afterAll(async () => {
  await stack.stop();
  for (const site of sites) site.closeAllConnections();
  for (const site of sites) site.close();
});

type Outcome = "right" | "aborted" | `wrong: ${string}`;

/** A visitor who reads the whole response or disconnects before its end. */
async function visit(agent: Agent, i: number, random: Random): Promise<Outcome> {
  const name = random.pick(NAMES);
  const nonce = `${name}-${i}-${random.below(1e9)}`;
  const bytes = random.below(10) === 0 ? random.below(BODY_MAX_BYTES) : random.below(2_000);
  const method = random.pick(["GET", "POST"]);
  const disconnectsAtMs = random.below(8) === 0 ? random.below(30) : null;
  const clientRequest = request({
    agent,
    method,
    host: "127.0.0.1",
    port: stack.server.port,
    path: `/${nonce}`,
    headers: { host: `${name}.localhost`, nonce, delay: random.below(20), bytes },
  });
  if (disconnectsAtMs !== null) setTimeout(() => clientRequest.destroy(), disconnectsAtMs);
  clientRequest.end(method === "POST" ? nonce : undefined);
  try {
    const [answer] = (await once(clientRequest, "response")) as [IncomingMessage];
    const body = await buffer(answer);
    const { site, nonce: echoed, received } = answer.headers;
    const isCorrect =
      answer.statusCode === 200 &&
      site === name &&
      echoed === nonce &&
      received === (method === "POST" ? nonce.slice(0, 40) : "") &&
      body.equals(Buffer.alloc(bytes, nonce));
    return isCorrect
      ? "right"
      : `wrong: ${answer.statusCode} ${nonce} got ${String(site)} ${String(echoed)}`;
  } catch (error) {
    return disconnectsAtMs === null ? `wrong: ${String(error)}` : "aborted";
  }
}

test("a thousand visitors of two tunnels each get their own complete response, and leave no stream behind", async () => {
  const random = createRandom(41);
  const agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY });
  const counts = new Map<Outcome, number>();
  let next = 0;
  const visitor = async (): Promise<void> => {
    for (let i = next++; i < REQUESTS; i = next++) {
      const outcome = await visit(agent, i, random);
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, visitor));
  agent.destroy();

  expect([...counts.keys()].sort()).toEqual(["aborted", "right"]);
  expect(counts.get("right")).toBeGreaterThan(REQUESTS / 2);
  await vi.waitUntil(() => openRequests === 0, WAIT_OPTIONS);
  // With this clock, an agent with an open stream would wait forever.
  vi.useFakeTimers({ toFake: ["Date"] });
  await Promise.all(tunnels.map((tunnel) => tunnel.close()));
  vi.useRealTimers();
});
