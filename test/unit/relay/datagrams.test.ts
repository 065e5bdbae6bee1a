/** WireGuard datagrams through a real relay: which ones pass, which are dropped, and that the relay does not amplify. */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { NetworkTicket } from "../../../protocol/relay/ticket.ts";
import { fastTimers } from "../../harness/preloads/fast-clock.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { RelayAgent } from "../../harness/relay/relay-agent.ts";
import { startTestRelay, type RelayWithFakeApi } from "../../harness/relay/test-relay.ts";
import { type KeyPair, newKeyPair } from "../../harness/wireguard/crypto.ts";
import { writeInitiation } from "../../harness/wireguard/handshake.ts";

let relay: RelayWithFakeApi;
beforeAll(async () => {
  relay = await startTestRelay({ env: fastTimers(5) });
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

let ports = 0;
const SERVER = newKeyPair();

interface ServingAgent extends AsyncDisposable {
  agent: RelayAgent;
  port: number;
  networkId: string;
  welcome: Awaited<ReturnType<RelayAgent["waitForWelcome"]>> & { kind: "network" };
}

/** An agent for a network of its own, bound over UDP. */
async function serve(claims: Partial<NetworkTicket> = {}, at = relay): Promise<ServingAgent> {
  ports += 1;
  const port = claims.port ?? relay.ports[ports]!;
  const networkId = claims.sub ?? crypto.randomUUID();
  const ticket = await at.networkTicket({
    server_public_key: Buffer.from(SERVER.publicKey).toString("base64"),
    ...claims,
    port,
    sub: networkId,
  });
  const agent = new RelayAgent(at.url, ticket);
  const welcome = await agent.waitForWelcome("network");
  await agent.bind(welcome);
  return {
    agent,
    port,
    networkId,
    welcome,
    [Symbol.asyncDispose]: () => agent[Symbol.asyncDispose](),
  };
}

interface Peer extends Disposable {
  socket: Socket;
  port: number;
  received: Buffer[];
  send(message: Uint8Array, port: number): void;
}

async function newPeer(): Promise<Peer> {
  const socket = createSocket("udp4");
  const received: Buffer[] = [];
  socket.on("message", (message) => received.push(message));
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    socket,
    port: socket.address().port,
    received,
    send: (message, port) => socket.send(message, port, "127.0.0.1"),
    [Symbol.dispose]: () => socket.close(),
  };
}

function initiation(index: number, server: KeyPair = SERVER): Uint8Array {
  return writeInitiation(newKeyPair(), server.publicKey, index).message;
}

function response(sender: number, receiver: number): Buffer {
  const message = Buffer.alloc(92, 7);
  message.writeUInt32LE(2, 0);
  message.writeUInt32LE(sender, 4);
  message.writeUInt32LE(receiver, 8);
  return message;
}

function transport(receiver: number, bytes = 96): Buffer {
  const message = Buffer.alloc(bytes, 9);
  message.writeUInt32LE(4, 0);
  message.writeUInt32LE(receiver, 4);
  return message;
}

function payloads(agent: RelayAgent): Buffer[] {
  return agent.datagrams.map(({ payload }) => payload);
}

async function readDropped(reason: string): Promise<number> {
  return relay.metric(`underpass_relay_datagrams_dropped_total{reason="${reason}"}`);
}

/** Resolves when one more datagram than `before` was dropped for a reason. */
async function waitUntilDropped(reason: string, before: number, count = 1): Promise<void> {
  await vi.waitUntil(async () => (await readDropped(reason)) >= before + count, WAIT_OPTIONS);
}

/** Completes a handshake between a peer and the server, up to the peer's first data. @returns the flow with its tag. */
async function handshake({ agent, port, welcome }: ServingAgent, peer: Peer, serverIndex: number) {
  const before = agent.datagrams.length;
  peer.send(initiation(1), port);
  await agent.waitUntil(() => agent.datagrams.length > before);
  const { id } = await agent.waitForFlow(peer.port);
  agent.sendUdp(welcome, id, response(serverIndex, 1));
  await agent.waitUntil(() => peer.received.length > 0);
  peer.send(transport(serverIndex), port);
  await agent.waitUntil(() => agent.datagrams.length > before + 1);
  return agent.waitForTaggedFlow(peer.port);
}

test("an initiation opens a flow, the response returns to its source, and data passes both ways", async () => {
  await using serving = await serve();
  using peer = await newPeer();
  const flow = await handshake(serving, peer, 77);
  expect(flow).toMatchObject({ address: "127.0.0.1", port: peer.port });
  expect(payloads(serving.agent)[0]).toHaveLength(148);
  // The first datagram of a flow is sent after the message that announces the flow; later ones use UDP.
  expect(serving.agent.datagrams.map(({ over }) => over)).toEqual(["websocket", "udp"]);
  serving.agent.sendUdp(serving.welcome, flow.id, transport(1, 1_400));
  await serving.agent.waitUntil(() => peer.received.length === 2);
  expect(peer.received[1]).toEqual(transport(1, 1_400));
  const publicKey = Buffer.from(newKeyPair().publicKey).toString("base64");
  serving.agent.send({ type: "device", flow: flow.id, publicKey });
  await vi.waitUntil(
    () => relay.api.network(serving.networkId)?.devices.length === 1,
    WAIT_OPTIONS,
  );
  const status = relay.api.network(serving.networkId);
  expect(status).toMatchObject({ state: "udp", wrongKeyHandshakes: 0 });
  expect(status?.devices[0]).toMatchObject({
    publicKey,
    endpoint: `127.0.0.1:${peer.port}`,
    rxBytes: 148 + 96,
    txBytes: 92 + 1_400,
  });
  expect(status?.devices[0]?.lastHandshakeAtMs).toBeGreaterThan(0);
});

test("a peer that changes its address is recognized by the server's index, and gets a new flow", async () => {
  await using serving = await serve();
  using peer = await newPeer();
  using moved = await newPeer();
  const flow = await handshake(serving, peer, 4_000);
  moved.send(transport(4_000), serving.port);
  const next = await serving.agent.waitForFlow(moved.port);
  expect(next.id).not.toBe(flow.id);
});

test("without UDP all datagrams go over the WebSocket, several in one message", async () => {
  await using serving = await serve();
  using peer = await newPeer();
  const { agent, port } = serving;
  const flow = await handshake(serving, peer, 5);
  agent.send({
    type: "path",
    transport: "websocket",
    latencyMs: null,
    loss: null,
    isLocalListening: true,
  });
  await agent.flush();
  const before = agent.datagrams.length;
  for (let count = 0; count < 10; count += 1) peer.send(transport(5), port);
  await agent.waitUntil(() => agent.datagrams.length === before + 10);
  expect(agent.datagrams.slice(before).every(({ over }) => over === "websocket")).toBe(true);
  agent.sendWebSocket(flow.id, transport(1));
  await agent.waitUntil(() => peer.received.length === 2);
});

test("junk, handshakes for another key and unexpected responses are dropped without a response", async () => {
  await using serving = await serve();
  using peer = await newPeer();
  const junk = await readDropped("not_wireguard");
  const wrong = await readDropped("wrong_mac1");
  const unknown = await readDropped("unknown_peer");
  const messages = [Buffer.from("hello"), Buffer.alloc(0), Buffer.alloc(1_400, 4)];
  for (const message of messages) peer.send(message, serving.port);
  await waitUntilDropped("not_wireguard", junk, messages.length);
  peer.send(initiation(1, newKeyPair()), serving.port);
  await waitUntilDropped("wrong_mac1", wrong);
  peer.send(response(1, 2), serving.port);
  await waitUntilDropped("unknown_peer", unknown);
  await vi.waitUntil(
    () => relay.api.network(serving.networkId)?.wrongKeyHandshakes === 1,
    WAIT_OPTIONS,
  );
  await serving.agent.flush();
  expect(serving.agent.datagrams).toHaveLength(0);
  expect(peer.received).toHaveLength(0);
});

test("an agent can't send more to an address than it received from there, until the address is confirmed", async () => {
  await using serving = await serve();
  using peer = await newPeer();
  const { agent, port, welcome } = serving;
  peer.send(initiation(1), port);
  const { id } = await agent.waitForFlow(peer.port);
  const before = await readDropped("unconfirmed_peer");
  for (let count = 0; count < 20; count += 1) agent.sendUdp(welcome, id, response(count, 1));
  await waitUntilDropped("unconfirmed_peer", before, 19);
  await agent.waitUntil(() => peer.received.length === 1);
  const out = peer.received.reduce((bytes, { length }) => bytes + length, 0);
  expect(out).toBeLessThanOrEqual(148);
});

test("an agent can't send to an address that is not confirmed after a reconnect: the flow is not restored", async () => {
  const [port, sub] = [relay.ports[20]!, crypto.randomUUID()];
  using peer = await newPeer();
  const before = await serve({ port, sub });
  peer.send(initiation(1), port);
  const flow = await before.agent.waitForFlow(peer.port);
  await before[Symbol.asyncDispose]();
  await using after = await serve({ port, sub });
  const { agent, welcome } = after;
  agent.send({ type: "resume", association: before.welcome.association, flows: [flow] });
  await agent.waitUntil(() => agent.messages.length === 2);
  expect(agent.messages[1]).toEqual({ type: "flow_closed", id: flow.id });
  const unknown = await readDropped("unknown_flow");
  for (let count = 0; count < 20; count += 1) agent.sendUdp(welcome, flow.id, transport(1, 1_400));
  await waitUntilDropped("unknown_flow", unknown, 20);
  expect(peer.received).toHaveLength(0);
});

test("a peer of an earlier session gets no tag for its data, and one when it uses an index that the server sent", async () => {
  await using serving = await serve();
  using peer = await newPeer();
  const { agent, port, welcome } = serving;
  peer.send(transport(99), port);
  const { id } = await agent.waitForFlow(peer.port);
  agent.sendUdp(welcome, id, transport(1));
  await agent.waitUntil(() => peer.received.length === 1);
  peer.send(transport(99), port);
  await agent.waitUntil(() => agent.datagrams.length === 2);
  await agent.flush();
  expect((await agent.waitForFlow(peer.port)).tag).toBe("");
  await handshake(serving, peer, 15);
});

test("keys that an agent names for a flow without new traffic are not counted as devices", async () => {
  await using serving = await serve();
  using peer = await newPeer();
  const { id: flow } = await handshake(serving, peer, 17);
  const keys = Array.from({ length: 4 }, () =>
    Buffer.from(newKeyPair().publicKey).toString("base64"),
  );
  for (const publicKey of keys) serving.agent.send({ type: "device", flow, publicKey });
  await serving.agent.flush();
  peer.send(transport(17), serving.port);
  const readKeys = () =>
    relay.api.network(serving.networkId)?.devices.map(({ publicKey }) => publicKey) ?? [];
  await vi.waitUntil(() => readKeys().includes(keys[3]), WAIT_OPTIONS);
  expect(readKeys()).toEqual([keys[0], keys[3]]);
});

test("datagrams of an agent that are not WireGuard are dropped", async () => {
  await using serving = await serve();
  using peer = await newPeer();
  const { id } = await handshake(serving, peer, 9);
  const before = await readDropped("not_wireguard");
  serving.agent.sendUdp(serving.welcome, id, Buffer.from("GET / HTTP/1.1\r\n\r\n".repeat(10)));
  await waitUntilDropped("not_wireguard", before);
  expect(peer.received).toHaveLength(1);
});

test("a BIND that is repeated, forged or of an unknown association gets no response and changes nothing", async () => {
  await using serving = await serve();
  using attacker = await newPeer();
  using peer = await newPeer();
  const { agent, welcome } = serving;
  const bind = agent.nextBind(welcome);
  const counts = agent.bound.length;
  agent.udp?.send(bind, welcome.udpPort, "127.0.0.1");
  await agent.waitUntil(() => agent.bound.length === counts + 1);
  const replayed = await readDropped("replayed_bind");
  attacker.send(bind, welcome.udpPort);
  await waitUntilDropped("replayed_bind", replayed);
  const bad = await readDropped("bad_bind");
  const forged = agent.nextBind({ ...welcome, key: Buffer.alloc(32).toString("base64") });
  attacker.send(forged, welcome.udpPort);
  attacker.send(agent.nextBind({ ...welcome, association: 1 }), welcome.udpPort);
  attacker.send(Buffer.concat([agent.nextBind(welcome), Buffer.alloc(1)]), welcome.udpPort);
  await waitUntilDropped("bad_bind", bad, 3);
  await handshake(serving, peer, 3);
  expect(attacker.received).toHaveLength(0);
});

test("DATA from another address than the bound one is dropped, and so is DATA for another network's flow", async () => {
  await using serving = await serve();
  await using other = await serve();
  using peer = await newPeer();
  using attacker = await newPeer();
  const { id } = await handshake(serving, peer, 3);
  const unbound = await readDropped("unbound_address");
  serving.agent.sendUdp(serving.welcome, id, transport(1), attacker.socket);
  other.agent.sendUdp(other.welcome, id, transport(1));
  await waitUntilDropped("unbound_address", unbound, 2);
  const unknown = await readDropped("unknown_flow");
  other.agent.sendWebSocket(id, transport(1));
  await waitUntilDropped("unknown_flow", unknown);
  expect(peer.received).toHaveLength(1);
});

test("the response to a BIND is never longer than the BIND", async () => {
  await using serving = await serve();
  expect(serving.agent.udpBytes).toBeGreaterThan(0);
  expect(serving.agent.udpBytes).toBeLessThanOrEqual(64 * serving.agent.bound.length);
});

test("the largest datagram that fits passes both ways, a larger one is dropped", async () => {
  await using serving = await serve();
  using peer = await newPeer();
  const { agent, port, welcome } = serving;
  const { id } = await handshake(serving, peer, 11);
  const largest = transport(11, 65_499);
  const before = agent.datagrams.length;
  const tooLarge = await readDropped("too_large");
  peer.send(transport(11, 65_507), port);
  await waitUntilDropped("too_large", tooLarge);
  peer.send(largest, port);
  await agent.waitUntil(() => agent.datagrams.length > before);
  expect(payloads(agent).at(-1)?.equals(largest)).toBe(true);
  agent.sendUdp(welcome, id, largest);
  await agent.waitUntil(() => peer.received.length === 2);
  expect(peer.received[1]?.equals(largest)).toBe(true);
});

test("after a restart the agent's flows are restored with their ids, and only those that the relay created", async () => {
  await using own = await startTestRelay();
  const port = own.ports[0]!;
  const sub = crypto.randomUUID();
  using peer = await newPeer();
  const before = await serve({ port, sub }, own);
  const flow = await handshake(before, peer, 21);
  await own.stop("SIGKILL");
  await before[Symbol.asyncDispose]();
  await own.start();

  await using after = await serve({ port, sub }, own);
  const { agent, welcome } = after;
  expect(welcome.epoch).not.toBe(before.welcome.epoch);
  const forged = { ...flow, id: (flow.id ^ 1) >>> 0, address: "127.0.0.2" };
  agent.send({
    type: "resume",
    association: before.welcome.association,
    flows: [flow, forged],
  });
  const named = await agent.waitForFlow(peer.port);
  expect(named.id).toBe(flow.id);
  expect(named.tag).not.toBe(flow.tag);
  await agent.waitUntil(() => agent.messages.some(({ type }) => type === "flow_closed"));
  expect(agent.messages.at(-1)).toEqual({ type: "flow_closed", id: forged.id });
  // The server sends first.
  agent.sendUdp(welcome, flow.id, transport(1));
  await agent.waitUntil(() => peer.received.length === 2);
  peer.send(transport(21), port);
  await agent.waitUntil(() => agent.datagrams.length === 1);
  expect(agent.datagrams[0]).toMatchObject({ flow: flow.id, over: "udp" });
  // Another network can't resume them.
  await using other = await serve({ port: own.ports[1] }, own);
  other.agent.send({ type: "resume", association: welcome.association, flows: [named] });
  await other.agent.waitUntil(() => other.agent.messages.length === 2);
  expect(other.agent.messages[1]).toEqual({ type: "flow_closed", id: flow.id });
});

test("a flood of junk beside a session costs it less than 2 % of its datagrams", async () => {
  await using serving = await serve();
  using peer = await newPeer();
  using flooder = await newPeer();
  const { agent, port } = serving;
  await handshake(serving, peer, 13);
  const before = agent.datagrams.length;
  const junk = Buffer.alloc(200, 1);
  const sent = 1_000;
  const received = () => agent.datagrams.length - before;
  // Twenty junk datagrams for each datagram of the session. On a busy machine the relay may not run for a while, so the
  // datagrams in flight must fit into the kernel's buffer; otherwise the test would measure that buffer.
  for (let count = 1; count <= sent; count += 1) {
    for (let times = 0; times < 20; times += 1) flooder.send(junk, port);
    peer.send(transport(13), port);
    if (count % 50 === 0) await agent.waitUntil(() => received() >= count * 0.98);
  }
  expect(received()).toBeGreaterThanOrEqual(sent * 0.98);
});
