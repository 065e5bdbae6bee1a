/** A TCP tunnel's port at the relay: its visitors' connections, how they end, and their limits. */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { expect, test, vi } from "vitest";
import { getConnectionLimits } from "../../../relay/limits.ts";
import { LimitsByTunnel, UNUSED_LIMITS_RETENTION_MS } from "../../../relay/tcp/tunnel-limits.ts";
import { VisitorSlots } from "../../../relay/tcp/visitor-slots.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import {
  waitForEnd,
  readAll,
  readExactly,
  readHead,
  startTunnelPort,
} from "../../harness/relay/tcp/tunnel-port.ts";

const MiB = 1024 * 1024;

/** A local server that sends back what it receives. */
function echo(connection: Socket): void {
  void readHead(connection).then(() => connection.pipe(connection));
}

test("a visitor gets an idle data connection, and the agent gets the visitor's address", async () => {
  await using tunnel = await startTunnelPort();
  const connection = await tunnel.openDataConnection();
  const visitor = await tunnel.visit();
  const head = await readHead(connection);
  expect(head).toEqual({
    address: "127.0.0.1",
    port: visitor.localPort,
    localAddress: "127.0.0.1",
    localPort: tunnel.number,
  });
  connection.write("220 ready");
  expect(String(await readExactly(visitor, 9))).toBe("220 ready");
  visitor.write("HELO");
  expect(String(await readExactly(connection, 4))).toBe("HELO");
  expect(tunnel.port.getUsage()).toEqual({
    connections: 1,
    openConnections: 1,
    bytesIn: 4,
    bytesOut: 9,
  });
});

test("a visitor without an idle data connection waits for one that is requested from the agent", async () => {
  await using tunnel = await startTunnelPort({ serve: echo });
  const visitor = await tunnel.visit();
  visitor.write("early");
  expect(String(await readExactly(visitor, 5))).toBe("early");
  expect(tunnel.requestedConnections).toBe(1);
});

test("data connections that were reset or ended are not used for a visitor", async () => {
  await using tunnel = await startTunnelPort({ serve: echo });
  const dead = await tunnel.openDataConnection();
  dead.resetAndDestroy();
  const ended = await tunnel.openDataConnection();
  ended.end();
  // The relay has noticed the reset too, which arrived before.
  expect(await waitForEnd(ended)).toBeNull();
  const visitor = await tunnel.visit();
  visitor.write("x");
  expect(String(await readExactly(visitor, 1))).toBe("x");
  expect(tunnel.requestedConnections).toBe(1);
});

test("each direction ends on its own: bytes after the other side's FIN still arrive", async () => {
  await using tunnel = await startTunnelPort();
  const connection = await tunnel.openDataConnection();
  const visitor = await tunnel.visit();
  await readHead(connection);
  visitor.end("the whole request");
  expect(String(await readAll(connection))).toBe("the whole request");
  connection.write("an answer ");
  connection.end("and its rest");
  expect(String(await readAll(visitor))).toBe("an answer and its rest");
  await vi.waitUntil(() => tunnel.port.getUsage().openConnections === 0, WAIT_OPTIONS);
  expect(tunnel.port.getUsage()).toMatchObject({ bytesIn: 17, bytesOut: 22 });
});

test.each(["visitor", "agent"])(
  "a reset by the %s is a reset for the other side",
  async (sender) => {
    await using tunnel = await startTunnelPort();
    const connection = await tunnel.openDataConnection();
    const visitor = await tunnel.visit();
    await readHead(connection);
    const [broken, other] = sender === "visitor" ? [visitor, connection] : [connection, visitor];
    const end = waitForEnd(other);
    broken.resetAndDestroy();
    expect(await end).toBe("ECONNRESET");
  },
);

test("20 MiB in both directions at once arrive completely", async () => {
  await using tunnel = await startTunnelPort();
  const connection = await tunnel.openDataConnection();
  const visitor = await tunnel.visit();
  await readHead(connection);
  const payload = randomBytes(20 * MiB);
  const expected = createHash("sha256").update(payload).digest("hex");
  visitor.end(payload);
  connection.end(payload);
  const received = await Promise.all([readAll(visitor), readAll(connection)]);
  const sums = received.map((bytes) => createHash("sha256").update(bytes).digest("hex"));
  expect(sums).toEqual([expected, expected]);
});

test("1,000 visitors at once are each served", async () => {
  await using tunnel = await startTunnelPort({ serve: echo });
  const visitors = await Promise.all(Array.from({ length: 1_000 }, () => tunnel.visit()));
  const answers = visitors.map(async (visitor, i) => {
    const text = `visitor ${i}`;
    visitor.end(text);
    return String(await readAll(visitor)) === text;
  });
  expect((await Promise.all(answers)).filter((isCorrect) => isCorrect)).toHaveLength(1_000);
  expect(tunnel.port.getUsage().connections).toBe(1_000);
});

test("addresses outside of the allowlist are reset, from the next connection on", async () => {
  await using tunnel = await startTunnelPort({ cidrs: ["203.0.113.0/24"], serve: echo });
  expect(await tunnel.waitForVisitEnd()).toBe("ECONNRESET");
  tunnel.port.setAllowedCidrs(["127.0.0.0/8"]);
  const visitor = await tunnel.visit();
  visitor.end("in");
  expect(String(await readAll(visitor))).toBe("in");
  tunnel.port.setAllowedCidrs(["::1/128"]);
  expect(await tunnel.waitForVisitEnd()).toBe("ECONNRESET");
  expect(tunnel.port.refusals.address_not_allowed).toBe(2);
});

test("a visitor that resets its connection while it waits for the agent makes room for the next one at once", async () => {
  const connections = new VisitorSlots(2);
  await using tunnel = await startTunnelPort({ waitLimits: { backlogMax: 1 }, connections });
  const gone = await tunnel.visit();
  gone.write("GET / HTTP/1.1\r\n");
  await vi.waitUntil(() => tunnel.requestedConnections === 1, WAIT_OPTIONS);
  gone.resetAndDestroy();
  await vi.waitUntil(() => connections.taken === 0, WAIT_OPTIONS);
  expect(tunnel.port.getUsage().openConnections).toBe(0);
  const next = await tunnel.visit();
  await vi.waitUntil(() => tunnel.requestedConnections === 2, WAIT_OPTIONS);
  next.write("x");
  const connection = await tunnel.openDataConnection();
  expect((await readHead(connection)).port).toBe(next.localPort);
  expect(String(await readExactly(connection, 1))).toBe("x");
  expect(tunnel.port.refusals).toMatchObject({ backlog: 0, no_agent_connection: 0 });
});

test.each([0, 100, 4_096, 1_000_000])(
  "%i bytes that a visitor sends while it waits arrive before its FIN",
  async (bytes) => {
    await using tunnel = await startTunnelPort();
    const visitor = await tunnel.visit();
    const payload = randomBytes(bytes);
    visitor.end(payload);
    await vi.waitUntil(() => tunnel.requestedConnections === 1, WAIT_OPTIONS);
    const connection = await tunnel.openDataConnection();
    await readHead(connection);
    expect(payload.equals(await readAll(connection))).toBe(true);
    connection.end("answer");
    expect(String(await readAll(visitor))).toBe("answer");
  },
);

test("visitors that wait for the agent are bounded in number and in time", async () => {
  await using tunnel = await startTunnelPort({ waitLimits: { backlogMax: 2, waitMaxMs: 50 } });
  const ends = await Promise.all([1, 2, 3].map(() => tunnel.waitForVisitEnd()));
  expect(ends).toEqual(["ECONNRESET", "ECONNRESET", "ECONNRESET"]);
  expect(tunnel.port.refusals).toMatchObject({ backlog: 1, no_agent_connection: 2 });
  await vi.waitUntil(() => tunnel.port.getUsage().openConnections === 0, WAIT_OPTIONS);
});

test("connections of one address are bounded, at a time and new ones a second", async () => {
  const visitorLimits = { connectionsPerSourceMax: 2, sourceBurst: 3, sourcePerSecond: 0 };
  await using tunnel = await startTunnelPort({ serve: echo, visitorLimits });
  const [first, second] = [await tunnel.visit(), await tunnel.visit()];
  expect(await tunnel.waitForVisitEnd()).toBe("ECONNRESET");
  first.resetAndDestroy();
  second.resetAndDestroy();
  await vi.waitUntil(() => tunnel.port.getUsage().openConnections === 0, WAIT_OPTIONS);
  const third = await tunnel.visit();
  third.write("x");
  await readExactly(third, 1);
  expect(await tunnel.waitForVisitEnd()).toBe("ECONNRESET");
  expect(tunnel.port.refusals.source_limit).toBe(2);
});

test("connections of a tunnel are bounded", async () => {
  await using tunnel = await startTunnelPort({ serve: echo, visitorLimits: { connectionsMax: 1 } });
  const visitor = await tunnel.visit();
  visitor.write("x");
  await readExactly(visitor, 1);
  expect(await tunnel.waitForVisitEnd()).toBe("ECONNRESET");
  expect(tunnel.port.refusals.tunnel_limit).toBe(1);
});

test.each([
  ["of a tunnel", { connectionsMax: 1 }, "tunnel_limit"],
  ["of one address", { connectionsPerSourceMax: 1 }, "source_limit"],
  ["that one address opens", { sourceBurst: 1, sourcePerSecond: 0 }, "source_limit"],
] as const)(
  "connections %s are bounded over all its associations",
  async (_of, visitorLimits, refusal) => {
    await using first = await startTunnelPort({ serve: echo, visitorLimits });
    const visitor = await first.visit();
    visitor.write("x");
    await readExactly(visitor, 1);
    first.port.release();
    await using second = await startTunnelPort({ serve: echo, limits: first.limits });
    expect(await second.waitForVisitEnd()).toBe("ECONNRESET");
    expect(second.port.refusals[refusal]).toBe(1);
    visitor.write("y");
    expect(String(await readExactly(visitor, 1))).toBe("y");
  },
);

test("a tunnel's limits are kept while they are used, and for as long as they differ from new ones", async () => {
  const tunnels = new LimitsByTunnel();
  const limits = tunnels.getOrCreate("one", 1_000);
  await using tunnel = await startTunnelPort({ serve: echo, limits });
  const visitor = await tunnel.visit();
  visitor.write("x");
  await readExactly(visitor, 1);
  for (const nowMs of [0, UNUSED_LIMITS_RETENTION_MS]) tunnels.sweep(nowMs);
  tunnel.port.release();
  for (const nowMs of [0, UNUSED_LIMITS_RETENTION_MS]) tunnels.sweep(nowMs);
  expect(tunnels.size).toBe(1);
  visitor.resetAndDestroy();
  await vi.waitUntil(() => !limits.isUsed, WAIT_OPTIONS);
  for (const nowMs of [0, UNUSED_LIMITS_RETENTION_MS - 1]) tunnels.sweep(nowMs);
  expect(tunnels.getOrCreate("one", 1_000)).toBe(limits);
  for (const nowMs of [0, UNUSED_LIMITS_RETENTION_MS]) tunnels.sweep(nowMs);
  expect(tunnels.size).toBe(0);
});

test("one source gets half of the connections that all tunnels of a relay share", async () => {
  const connections = new VisitorSlots(4);
  const source = { serve: echo, connections };
  await using first = await startTunnelPort(source);
  await using second = await startTunnelPort(source);
  for (const tunnel of [first, second]) {
    const visitor = await tunnel.visit();
    visitor.write("x");
    await readExactly(visitor, 1);
  }
  expect(await first.waitForVisitEnd()).toBe("ECONNRESET");
  expect(first.port.refusals.relay_limit).toBe(1);
  expect(connections.take("another organization", "203.0.113.1")).toBe(true);
  connections.free("another organization", "203.0.113.1");
  first.port.close();
  await vi.waitUntil(() => connections.taken === 1, WAIT_OPTIONS);
  const visitor = await second.visit();
  visitor.write("x");
  await readExactly(visitor, 1);
});

test("the visitors of one organization get half of the connections of a relay, from however many sources", () => {
  const connections = new VisitorSlots(8);
  const take = (org: string, at: number): boolean => connections.take(org, `203.0.113.${at}`);
  expect([1, 2, 3, 4, 5].map((at) => take("one", at))).toEqual([true, true, true, true, false]);
  expect([take("other", 6), take("other", 7), connections.taken]).toEqual([true, true, 6]);
  for (const at of [1, 2]) connections.free("one", `203.0.113.${at}`);
  expect(take("other", 8)).toBe(true);
});

test("a relay accepts no more connections than it has descriptors for", () => {
  expect(getConnectionLimits(65_536)).toEqual({ visitors: 16_320, agents: 16_320 });
  expect(getConnectionLimits(1_024)).toEqual({ visitors: 192, agents: 192 });
  expect(getConnectionLimits(Infinity)).toEqual({ visitors: 65_536, agents: 65_536 });
});

test("all connections of a tunnel share its rate, in each direction", async () => {
  const mbps = 80;
  await using tunnel = await startTunnelPort({ mbps, serve: echo });
  const visitors = await Promise.all([1, 2, 3, 4].map(() => tunnel.visit()));
  const startedAtMs = performance.now();
  const bytes = MiB;
  await Promise.all(
    visitors.map(async (visitor) => {
      visitor.end(Buffer.alloc(bytes));
      expect((await readAll(visitor)).length).toBe(bytes);
    }),
  );
  const seconds = (performance.now() - startedAtMs) / 1000;
  // The bytes of a tenth of a second may pass at once, in each direction.
  const leastSeconds = (4 * bytes * 8) / (mbps * 1e6) - 0.1;
  expect(seconds).toBeGreaterThan(leastSeconds);
});

test("a port that was closed can be bound again at once, and its connections are reset", async () => {
  await using tunnel = await startTunnelPort();
  const connection = await tunnel.openDataConnection();
  const visitor = await tunnel.visit();
  await readHead(connection);
  const ends = Promise.all([waitForEnd(visitor), waitForEnd(connection)]);
  tunnel.port.close();
  expect(await ends).toEqual(["ECONNRESET", "ECONNRESET"]);
  const next = createServer().listen(tunnel.number, "127.0.0.1");
  await once(next, "listening");
  next.close();
});

test("a released port keeps open connections, and accepts no new ones", async () => {
  await using tunnel = await startTunnelPort();
  const connection = await tunnel.openDataConnection();
  const visitor = await tunnel.visit();
  await readHead(connection);
  tunnel.port.release();
  await expect(tunnel.visit()).rejects.toThrow("ECONNREFUSED");
  visitor.end("still here");
  expect(String(await readAll(connection))).toBe("still here");
});
