/** The relay's control connections: which agents it accepts, replaces and disconnects. */
import { generateKeyPair } from "jose";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { FLOWS_PER_PORT_MAX } from "../../../protocol/relay/limits.ts";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import { fastTimers } from "../../harness/preloads/fast-clock.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { RelayAgent } from "../../harness/relay/relay-agent.ts";
import { startTestRelay, type RelayWithFakeApi } from "../../harness/relay/test-relay.ts";

let relay: RelayWithFakeApi;
beforeAll(async () => {
  relay = await startTestRelay({ env: fastTimers(10) });
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

let ports = 0;
/** A port that no other test of this file uses. */
function newPort(): number {
  ports += 1;
  return relay.ports[ports]!;
}

async function readCloseCode(ticket: string | null): Promise<number> {
  await using agent = new RelayAgent(relay.url, ticket);
  return (await agent.waitForClose()).code;
}

test("an agent's welcome has the endpoint for its peers and the port for its datagrams", async () => {
  const port = newPort();
  await using agent = new RelayAgent(relay.url, await relay.networkTicket({ port }));
  const welcome = await agent.waitForWelcome("network");
  expect(welcome.publicEndpoint).toBe(`127.0.0.1:${port}`);
  expect(welcome.udpPort).toBe(relay.port);
  expect(Buffer.from(welcome.key, "base64")).toHaveLength(32);
});

describe("a ticket is refused permanently", () => {
  test("when it is missing, or is not a JWT", async () => {
    expect(await readCloseCode(null)).toBe(CLOSE.unauthorized);
    expect(await readCloseCode("ticket")).toBe(CLOSE.unauthorized);
  });

  test("when it has expired", async () => {
    const exp = Math.floor(Date.now() / 1_000) - 60;
    expect(await readCloseCode(await relay.networkTicket({ exp }))).toBe(CLOSE.unauthorized);
  });

  test("when it is for another relay or audience, or another kind of token", async () => {
    const audiences = ["relay:other", "underpass"].map((audience) => ({ audience }));
    for (const options of [...audiences, { typ: "JWT" }, { typ: "at+jwt" }]) {
      expect(await readCloseCode(await relay.networkTicket({}, options))).toBe(CLOSE.unauthorized);
    }
  });

  test("when another key signed it, with the API's key id or another one", async () => {
    const { privateKey: key } = await generateKeyPair("ES256");
    expect(await readCloseCode(await relay.networkTicket({}, { key }))).toBe(CLOSE.unauthorized);
    const unknown = await relay.networkTicket({}, { key, kid: "unknown" });
    expect(await readCloseCode(unknown)).toBe(CLOSE.unauthorized);
  });
});

test("a ticket for a port outside of the relay's range is refused so that the agent asks for another one", async () => {
  for (const port of [relay.port, relay.port - 1, relay.ports.at(-1)! + 1, 22]) {
    expect(await readCloseCode(await relay.tunnelTicket({ port }))).toBe(CLOSE.server_changed);
  }
});

test.each([
  [null, "this server requires the subprotocol underpass-relay.v1"],
  [
    "underpass-relay.v0",
    "the agent is too old: this server requires underpass-relay.v1; upgrade the agent [agent_too_old]",
  ],
  [
    "underpass-relay.v2",
    "the server is too old for this agent: it requires underpass-relay.v1; upgrade the server",
  ],
])("an agent that offers the protocol %s is refused with an explanation", async (protocol, why) => {
  await using agent = new RelayAgent(relay.url, await relay.networkTicket(), protocol);
  const { code, reason } = await agent.waitForClose();
  expect([code, reason]).toEqual([CLOSE.unsupported_version, `unsupported_version: ${why}`]);
});

test("of two agents for one port the one with the higher generation serves", async () => {
  const port = newPort();
  const ticket = (generation: number) => relay.networkTicket({ port, generation });
  await using first = new RelayAgent(relay.url, await ticket(100));
  await first.waitForWelcome("network");
  await using second = new RelayAgent(relay.url, await ticket(200));
  await second.waitForWelcome("network");
  expect(await first.waitForClose()).toMatchObject({ code: CLOSE.replaced });
  await using late = new RelayAgent(relay.url, await ticket(150));
  expect(await late.waitForClose()).toMatchObject({ code: CLOSE.replaced });
  await second.flush();
  expect(second.closed).toBeNull();
});

test("an agent that reconnects with the same ticket replaces its own lost connection", async () => {
  const ticket = await relay.networkTicket({ port: newPort() });
  await using lost = new RelayAgent(relay.url, ticket);
  await lost.waitForWelcome("network");
  await using back = new RelayAgent(relay.url, ticket);
  await back.waitForWelcome("network");
  expect((await lost.waitForClose()).code).toBe(CLOSE.replaced);
});

test("networks and tunnels don't take each other's ports: one is UDP, the other TCP", async () => {
  const port = newPort();
  await using network = new RelayAgent(relay.url, await relay.networkTicket({ port }));
  await network.waitForWelcome("network");
  await using tunnel = new RelayAgent(relay.url, await relay.tunnelTicket({ port }));
  await tunnel.waitForWelcome("tunnel");
  await network.flush();
  expect(network.closed).toBeNull();
});

test("the next ticket is accepted for the same port; for another one the agent connects again", async () => {
  const [port, sub] = [newPort(), crypto.randomUUID()];
  await using agent = new RelayAgent(relay.url, await relay.networkTicket({ port, sub }));
  await agent.waitForWelcome("network");
  agent.send({ type: "ticket", ticket: await relay.networkTicket({ port, sub }) });
  await agent.flush();
  expect(agent.closed).toBeNull();
  agent.send({ type: "ticket", ticket: await relay.networkTicket({ port: newPort(), sub }) });
  expect((await agent.waitForClose()).code).toBe(CLOSE.server_changed);
});

test("the next ticket must be for the same network", async () => {
  const port = newPort();
  await using agent = new RelayAgent(relay.url, await relay.networkTicket({ port }));
  await agent.waitForWelcome("network");
  agent.send({
    type: "ticket",
    ticket: await relay.networkTicket({ port, sub: crypto.randomUUID() }),
  });
  expect((await agent.waitForClose()).code).toBe(CLOSE.protocol_error);
});

test("an invalid message of an agent ends the connection", async () => {
  // Escaped, 4,096 such keys would exceed what the API reads in one message of the relay.
  const key = JSON.stringify({ type: "device", flow: 1, publicKey: "\u0001".repeat(44) });
  for (const message of ["{", '{"type":"reboot"}', Buffer.from([1, 2, 3]), key]) {
    await using agent = new RelayAgent(relay.url, await relay.networkTicket({ port: newPort() }));
    await agent.waitForWelcome("network");
    agent.socket.send(message);
    expect((await agent.waitForClose()).code).toBe(CLOSE.protocol_error);
  }
});

test("a message with more values or levels than any has is not parsed, and one with all flows is", async () => {
  const port = newPort();
  const resume = { type: "resume" as const, association: 1, flows: [] };
  const values = Array(5 * FLOWS_PER_PORT_MAX + 10).fill(0);
  for (const more of [[[[]]], values]) {
    await using agent = new RelayAgent(relay.url, await relay.networkTicket({ port }));
    await agent.waitForWelcome("network");
    agent.socket.send(JSON.stringify({ ...resume, more }));
    expect((await agent.waitForClose()).code).toBe(CLOSE.protocol_error);
  }
  await using agent = new RelayAgent(relay.url, await relay.networkTicket({ port }));
  await agent.waitForWelcome("network");
  const flow = { id: 1, address: "192.0.2.1", port: 1, tag: "tag" };
  agent.send({ ...resume, flows: Array(FLOWS_PER_PORT_MAX).fill(flow) });
  await agent.flush();
  expect(agent.closed).toBeNull();
});

test("messages beyond the rate of a port end the connection, also after a reconnect, and those for other ports are read", async () => {
  // To read the Close, an agent needs the real 2 s.
  await using relay = await startTestRelay();
  const [port, other] = relay.ports;
  const flow = { id: 1, address: "192.0.2.1", port: 1, tag: "t".repeat(24) };
  const flows = Array(FLOWS_PER_PORT_MAX).fill(flow);
  const resume = { type: "resume" as const, association: 1, flows };
  const connect = async (to: number) => {
    const agent = new RelayAgent(relay.url, await relay.networkTicket({ port: to }));
    await agent.waitForWelcome("network");
    return agent;
  };
  /** Sends one after the other: bytes that are unread at the end would reset the connection, and the code would be lost. */
  const readCodeAfter = async (messages: number) => {
    await using agent = await connect(port!);
    const closed = agent.waitForClose();
    for (let n = 0; n < messages && agent.closed === null; n++) {
      agent.send(resume);
      await Promise.race([closed, agent.flush()]);
    }
    return (await closed).code;
  };
  expect(await readCodeAfter(20)).toBe(CLOSE.going_away);
  expect(await readCodeAfter(4)).toBe(CLOSE.going_away);
  await using neighbor = await connect(other!);
  neighbor.send(resume);
  await neighbor.flush();
  expect(neighbor.closed).toBeNull();
});

test("messages of a stranger are not read while the ticket is verified", async () => {
  const { privateKey: key } = await generateKeyPair("ES256");
  const unknown = await relay.networkTicket({}, { key, kid: "of another service" });
  await using stranger = new RelayAgent(relay.url, unknown);
  stranger.socket.on("open", () => stranger.socket.send("{"));
  expect((await stranger.waitForClose()).code).toBe(CLOSE.unauthorized);
});

describe("a revocation", () => {
  test("of a port ends the agent there, and not the same tunnel's agent at another port", async () => {
    const [port, other, sub] = [newPort(), newPort(), crypto.randomUUID()];
    await using moved = new RelayAgent(relay.url, await relay.tunnelTicket({ port: other, sub }));
    await moved.waitForWelcome("tunnel");
    await using agent = new RelayAgent(relay.url, await relay.tunnelTicket({ port, sub }));
    await agent.waitForWelcome("tunnel");
    const untilGeneration = Date.now();
    const reason = "connection_ended";
    await relay.api.revoke({ kind: "tunnel", id: sub, port, reason, untilGeneration });
    expect((await agent.waitForClose()).code).toBe(CLOSE.connection_ended);
    expect(
      await readCloseCode(await relay.tunnelTicket({ port, sub, generation: untilGeneration })),
    ).toBe(CLOSE.connection_ended);
    await moved.flush();
    expect(moved.closed).toBeNull();
  });

  test("ends the agent with its reason, and revokes earlier tickets, not later ones", async () => {
    const [port, sub] = [newPort(), crypto.randomUUID()];
    const ticket = (generation: number) => relay.networkTicket({ port, sub, generation });
    await using agent = new RelayAgent(relay.url, await ticket(1_000));
    await agent.waitForWelcome("network");
    await relay.api.revoke({
      kind: "network",
      id: sub,
      reason: "server_changed",
      untilGeneration: 2_000,
    });
    expect((await agent.waitForClose()).code).toBe(CLOSE.server_changed);
    expect(await readCloseCode(await ticket(1_500))).toBe(CLOSE.server_changed);
    await using next = new RelayAgent(relay.url, await ticket(2_001));
    await next.waitForWelcome("network");
  });

  test("of a token disconnects all agents with that token", async () => {
    const nonce = "ab".repeat(16);
    const agents = await Promise.all(
      [0, 1].map(async () => {
        const claims = { port: newPort(), nonce };
        return new RelayAgent(relay.url, await relay.tunnelTicket(claims));
      }),
    );
    await using other = new RelayAgent(relay.url, await relay.tunnelTicket({ port: newPort() }));
    for (const agent of [...agents, other]) await agent.waitForWelcome("tunnel");
    await relay.api.revoke({ kind: "tunnel", tokenNonce: nonce });
    for (const agent of agents) expect((await agent.waitForClose()).code).toBe(CLOSE.unauthorized);
    await other.flush();
    expect(other.closed).toBeNull();
  });
});

test("the API gets the status of a network while it is served, and when it goes offline", async () => {
  const sub = crypto.randomUUID();
  {
    await using agent = new RelayAgent(
      relay.url,
      await relay.networkTicket({ port: newPort(), sub }),
    );
    await agent.waitForWelcome("network");
    agent.send({
      type: "path",
      transport: "websocket",
      latencyMs: 12,
      loss: 0.01,
      isLocalListening: false,
    });
    await vi.waitUntil(() => relay.api.network(sub)?.latencyMs === 12, WAIT_OPTIONS);
    expect(relay.api.network(sub)).toMatchObject({
      state: "websocket",
      loss: 0.01,
      isLocalListening: false,
    });
  }
  await vi.waitUntil(() => relay.api.network(sub)?.state === "offline", WAIT_OPTIONS);
});

test("metrics are only for callers on this machine, or with the secret", async () => {
  const get = (headers: Record<string, string>) =>
    fetch(`${relay.httpUrl}/metrics`, { headers }).then(({ status }) => status);
  expect(await get({})).toBe(200);
  // A proxy on this machine forwards requests of other callers.
  expect(await get({ "x-forwarded-for": "192.0.2.1" })).toBe(404);
  expect(await get({ authorization: "Bearer wrong" })).toBe(404);
  const proxied = { "x-forwarded-for": "192.0.2.1", authorization: `Bearer ${relay.secret}` };
  expect(await get(proxied)).toBe(200);
});
