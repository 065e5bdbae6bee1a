/** Attacks on a relay by unauthenticated senders, other organizations and dishonest agents. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { BIND_BYTES, DATAGRAM, writeBind } from "../../../protocol/relay/datagrams.ts";
import type { RelayAccess } from "../../../protocol/schemas/networks.ts";
import type { RunningAgent } from "../../harness/tunnel/agent.ts";
import { openProbe, presentTicket, type UdpProbe } from "../../harness/networks/probe.ts";
import {
  startNetworkStack,
  type NetworkStack,
  type TestNetwork,
} from "../../harness/networks/stack.ts";
import { exchangeMany, ping, push } from "../../harness/networks/traffic.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { createRandom } from "../../harness/random.ts";
import { RelayAgent } from "../../harness/relay/relay-agent.ts";
import { newKeyPair } from "../../harness/wireguard/crypto.ts";
import { DATA_OVERHEAD_BYTES } from "../../harness/wireguard/session.ts";
import { INITIATION_BYTES, writeInitiation } from "../../harness/wireguard/handshake.ts";

let stack: NetworkStack;
let network: TestNetwork;
let agent: RunningAgent;
/** The agent's datagrams, as the relay received them. */
const fromAgent: Buffer[] = [];

beforeAll(async () => {
  stack = await startNetworkStack();
  stack.relay.udp.onDatagram = (direction, bytes) => {
    if (direction === "to-server") fromAgent.push(Buffer.from(bytes));
  };
  network = await stack.createNetwork();
  agent = await network.serve();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const requestTicket = (id: string, caller = stack.owner) =>
  caller.post<RelayAccess & { error?: string }>(`/private-networks/${id}/relay-ticket`);

describe("an unauthenticated sender", () => {
  test("that repeats the agent's BIND gets no answer, and does not become the agent", async () => {
    await using probe = await openProbe();
    const client = await network.connectClient();
    const binds = fromAgent.filter(([type]) => type === DATAGRAM.bind);
    expect(binds.length).toBeGreaterThan(0);
    for (const bind of binds) probe.send(bind, stack.relay.port);
    for (let round = 0; round < 5; round += 1) await push(network.server, client);
    expect(probe.received).toEqual([]);
  });

  test("that repeats the agent's DATA reaches no client", async () => {
    await using probe = await openProbe();
    const client = await network.connectClient();
    await exchangeMany(client, 20);
    const data = fromAgent.filter(([type]) => type === DATAGRAM.data);
    expect(data.length).toBeGreaterThan(20);
    for (const datagram of data) probe.send(datagram, stack.relay.port);
    await exchangeMany(client, 20);
    expect(client.rejected).toEqual({ forged: 0, replayed: 0, unknown: 0 });
  });

  test("that forges a BIND with another key gets no answer", async () => {
    await using probe = await openProbe();
    const association = fromAgent.find(([type]) => type === DATAGRAM.bind)!.readUInt32BE(4);
    const key = createRandom(3).bytes(32);
    probe.send(writeBind(association, Date.now(), key), stack.relay.port);
    await ping(await network.connectClient());
    expect(probe.received).toEqual([]);
  });

  test("gets no answer to a datagram that is not a handshake, at any port and of any size", async () => {
    await using probe = await openProbe();
    const random = createRandom(11);
    const before = { ...network.server.rejected };
    const lengths = [0, 1, 7, 8, 31, 32, 63, 64, 91, 92, 147, 148, 149, 1_400, 9_000, 65_507];
    for (const port of [stack.relay.port, network.endpoint.port]) {
      for (const length of lengths) {
        for (const type of [0, 1, 2, 3, 4, 5, 0x10, 0x11, 0x12, 255]) {
          const bytes = random.bytes(length);
          if (length > 0) bytes.set([type, 0, 0, 0].slice(0, length));
          probe.send(bytes, port);
        }
      }
    }
    await ping(await network.connectClient());
    expect(probe.received).toEqual([]);
    const { unknown, forged } = network.server.rejected;
    expect(forged).toBe(before.forged);
    // In its first minutes the relay accepts data for sessions that may have begun before it started.
    const data = lengths.filter((length) => length >= DATA_OVERHEAD_BYTES).length;
    expect(unknown - before.unknown).toBeLessThanOrEqual(data);
  });

  test("gets fewer bytes from the relay than it sends", async () => {
    await using probe = await openProbe();
    const own = newKeyPair();
    const serverKey = Buffer.from(network.server.publicKey, "base64");
    for (let index = 0; index < 30; index += 1)
      probe.send(writeInitiation(own, serverKey, index).message, network.endpoint.port);
    await vi.waitUntil(() => probe.received.length > 0, WAIT_OPTIONS);
    await ping(await network.connectClient());
    expect(probe.sentBytes).toBe(30 * INITIATION_BYTES);
    expect(probe.receivedBytes).toBeLessThan(probe.sentBytes);
  });

  test("that floods the network's port with junk costs a session less than 2 % of its datagrams", async () => {
    const client = await network.connectClient();
    const random = createRandom(5);
    const probes = await Promise.all(Array.from({ length: 4 }, openProbe));
    const junk = Array.from({ length: 64 }, (_, n) => {
      const bytes = random.bytes(n % 2 === 0 ? INITIATION_BYTES : 100);
      bytes.set([n % 2 === 0 ? 1 : 4, 0, 0, 0]);
      return bytes;
    });
    let isStopped = false;
    let junkSent = 0;
    const flood = (async () => {
      while (!isStopped) {
        for (let n = 0; n < 20; n += 1)
          random.pick(probes).send(random.pick(junk), network.endpoint.port);
        junkSent += 20;
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
    })();
    const returned = await exchangeMany(client, 2_000);
    isStopped = true;
    await flood;
    for (const probe of probes) await probe[Symbol.asyncDispose]();
    expect(junkSent).toBeGreaterThan(2_000);
    expect(returned).toBeGreaterThan(0.98 * 2_000);
  });
});

describe("a ticket", () => {
  test("is issued only to the network's own organization", async () => {
    const other = await stack.api.owner();
    expect((await requestTicket(network.id, other)).status).toBe(404);
    expect(
      (await stack.api.anonymous.post(`/private-networks/${network.id}/relay-ticket`)).status,
    ).toBe(401);
  });

  test("that is invalid, or another kind of token, is refused", async () => {
    const { body } = await requestTicket(network.id);
    const [head = "", claims = "", signature = ""] = body.ticket.split(".");
    const tampered = Buffer.from(
      Buffer.from(claims, "base64url")
        .toString()
        .replace(/"port":\d+/, '"port":1'),
    ).toString("base64url");
    for (const ticket of [
      undefined,
      "",
      "x".repeat(10_000),
      stack.owner.accessToken,
      `${head}.${tampered}.${signature}`,
      `${head}.${claims}.`,
    ])
      expect([401, 4401, 431]).toContain(await presentTicket(stack.relay.port, ticket));
    expect(agent.child.exitCode).toBe(null);
  });

  test("for one relay is refused by another", async () => {
    const otherRelay = await stack.startRelay("elsewhere");
    const { body } = await requestTicket(network.id);
    expect([401, 4401]).toContain(await presentTicket(otherRelay.port, body.ticket));
  });
});

/** A WireGuard message of the server or of a client. All of its indices are 0. */
function toMessage(type: number, bytes: number): Buffer {
  const message = Buffer.alloc(bytes);
  message[0] = type;
  return message;
}

describe("a dishonest agent", () => {
  /** An agent that serves the network with a valid ticket. */
  async function connect({ id }: TestNetwork): Promise<RelayAgent> {
    const { body } = await requestTicket(id);
    const own = new RelayAgent(`ws://127.0.0.1:${stack.relay.port}`, body.ticket);
    await own.bind(await own.waitForWelcome("network"));
    return own;
  }

  test("can't invent destinations: flows with a wrong tag are not resumed", async () => {
    await using own = await stack.createNetwork();
    await using dishonest = await connect(own);
    await using victim = await openProbe();
    const welcome = await dishonest.waitForWelcome("network");
    const flow = { id: 77, address: "127.0.0.1", port: victim.port };
    for (const tag of ["", Buffer.alloc(16, 1).toString("base64")])
      for (const association of [welcome.association, 1])
        dishonest.send({ type: "resume", association, flows: [{ ...flow, tag }] });
    await dishonest.flush();
    for (const id of [77, 0, 1]) dishonest.sendUdp(welcome, id, Buffer.alloc(148, 4));
    // The relay reads in order: when another network's traffic has passed, it has read all of this.
    await ping(await network.connectClient());
    expect(victim.received).toEqual([]);
  });

  /** The flow with its tag that a network's agent gets for a confirmed client. The agent has left. */
  async function openTaggedFlow(other: TestNetwork, client: UdpProbe) {
    await using honest = await connect(other);
    const welcome = await honest.waitForWelcome("network");
    const key = Buffer.from(other.server.publicKey, "base64");
    client.send(writeInitiation(newKeyPair(), key, 1).message, other.endpoint.port);
    const { id } = await honest.waitForFlow(client.port);
    honest.sendUdp(welcome, id, toMessage(2, 92));
    await honest.waitUntil(() => client.received.length === 1);
    client.send(toMessage(4, 96), other.endpoint.port);
    const flow = await honest.waitForTaggedFlow(client.port);
    return { flow, association: welcome.association };
  }

  test("can't resume flows of another network", async () => {
    await using other = await stack.createNetwork();
    await using own = await stack.createNetwork();
    await using client = await openProbe();
    await using dishonest = await connect(own);
    const { flow, association } = await openTaggedFlow(other, client);
    dishonest.send({ type: "resume", association, flows: [flow] });
    await dishonest.flush();
    dishonest.sendUdp(await dishonest.waitForWelcome("network"), flow.id, toMessage(4, 96));
    await ping(await network.connectClient());
    expect(client.received).toHaveLength(1);
  });

  test("gets a BOUND that is no longer than its BIND", async () => {
    await using own = await stack.createNetwork();
    await using dishonest = await connect(own);
    expect(dishonest.bound).toHaveLength(1);
    expect(dishonest.udpBytes).toBeLessThanOrEqual(BIND_BYTES);
  });
});
