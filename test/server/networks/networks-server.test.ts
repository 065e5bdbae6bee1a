/** A private network's server: its port at a relay, its tickets, and the messages from and to the relay. */
import { createRemoteJWKSet, decodeJwt, jwtVerify } from "jose";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import { RELAY_TICKET_TYPE, toRelayAudience, RelayTicket } from "../../../protocol/relay/ticket.ts";
import type { ApiToRelayMessage, Revocation } from "../../../protocol/relay/link.ts";
import type { Device, PrivateNetwork, RelayAccess } from "../../../protocol/schemas/networks.ts";
import {
  createCaller,
  mintToken,
  startApi,
  waitForBlockedStatement,
  type Caller,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import {
  createNetwork,
  enroll,
  newKey,
  registerServer,
} from "../../harness/server/private-networks.ts";
import { RelayLink } from "../../harness/server/relay-link.ts";
import { RELAY_SECRET } from "../../harness/server/server-kinds.ts";

let api: TestApi;
let owner: Person;
let relay: RelayLink;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
  expect(await readRelayState()).toBe("disconnected");
  relay = await RelayLink.connect(api.server, { firstPort: 40_001, lastPort: 40_300 });
});
afterAll(async () => {
  relay[Symbol.dispose]();
  await api.stop();
});

async function readRelayState(): Promise<string> {
  const { status, body } = await api.anonymous.get<{ relay: string }>("/ready");
  return status === 200 ? body.relay : String(status);
}

const read = async (id: string, by: Caller = owner) =>
  (await by.get<PrivateNetwork>(`/private-networks/${id}`)).body;
const requestTicket = (id: string, by: Caller = owner) =>
  by.post<RelayAccess & ErrorBody>(`/private-networks/${id}/relay-ticket`);

/** Connects another relay with few ports, which no other test uses. */
function connectRelay(count: number): Promise<RelayLink> {
  const relayId = `relay-${crypto.randomUUID().slice(0, 8)}`;
  return RelayLink.connect(api.server, { relayId, firstPort: 50_001, lastPort: 50_000 + count });
}

describe("a server", () => {
  test("gets a UDP port of the relay, which remains that of the network", async () => {
    const { id } = await createNetwork(owner);
    const key = newKey();
    const first = await registerServer(owner, id, { server_public_key: key });
    const port = first.reserved_udp_port!;
    expect(port).toBeGreaterThanOrEqual(40_001);
    expect(port).toBeLessThanOrEqual(40_300);
    expect(first).toMatchObject({
      server_public_key: key,
      server_listen_port: 51820,
      public_endpoint: `relay.example.com:${port}`,
      relay_id: "main",
    });
    expect(await read(id)).toEqual(first);
    const again = await registerServer(owner, id, { server_listen_port: 1 });
    expect(again).toMatchObject({ server_listen_port: 1, reserved_udp_port: port });
    const removed = await owner.delete<PrivateNetwork>(`/private-networks/${id}/server`);
    expect(removed.body).toMatchObject({
      server_public_key: null,
      server_listen_port: null,
      public_endpoint: null,
      reserved_udp_port: port,
    });
    expect((await owner.delete(`/private-networks/${id}/server`)).status).toBe(200);
    expect((await registerServer(owner, id)).reserved_udp_port).toBe(port);
  });

  test("of many that are registered at once has its own port", async () => {
    const networks: PrivateNetwork[] = [];
    for (let n = 0; n < 20; n++) networks.push(await createNetwork(owner));
    const served = await Promise.all(networks.map(({ id }) => registerServer(owner, id)));
    const ports = served.map(({ reserved_udp_port: port }) => port);
    expect(new Set(ports).size).toBe(20);
    const twice = await Promise.all([0, 1, 2].map(() => registerServer(owner, networks[0]!.id)));
    expect(new Set(twice.map(({ reserved_udp_port: port }) => port))).toEqual(new Set([ports[0]]));
  });

  test.each([
    [{ server_public_key: "short" }, "server_public_key"],
    [{ server_public_key: undefined }, "server_public_key"],
    [{ server_listen_port: 0 }, "server_listen_port"],
    [{ server_listen_port: 65_536 }, "server_listen_port"],
    [{ server_listen_port: "51820" }, "server_listen_port"],
    [{ public_endpoint: "vpn.example.com" }, "public_endpoint"],
    [{ public_endpoint: "vpn.example.com:0" }, "public_endpoint"],
    [{ public_endpoint: "vpn.example.com:65536" }, "public_endpoint"],
    [{ public_endpoint: "a b:51820" }, "public_endpoint"],
    [{ public_endpoint: "a\nPostUp=x:51820" }, "public_endpoint"],
    [{ public_endpoint: "[::1:51820" }, "public_endpoint"],
    [{ public_endpoint: "[:::1]:51820" }, "public_endpoint"],
    [{ relay_id: "nowhere" }, "relay_id"],
    [{ relay_id: "no id" }, "relay_id"],
  ])("is not registered with %j", async (change, field) => {
    const { id } = await createNetwork(owner);
    const body = { server_public_key: newKey(), server_listen_port: 51820, ...change };
    const reply = await owner.put<ErrorBody>(`/private-networks/${id}/server`, body);
    expect([reply.status, reply.body.error]).toEqual([400, "invalid_request"]);
    expect(reply.body.fields?.map(({ path }) => path)).toContain(field);
    expect((await read(id)).reserved_udp_port).toBeNull();
  });

  test("may be reachable without the relay", async () => {
    const { id } = await createNetwork(owner);
    const own = await registerServer(owner, id, { public_endpoint: "[2001:db8::1]:51820" });
    expect(own.public_endpoint).toBe("[2001:db8::1]:51820");
    expect(own.reserved_udp_port).toBeGreaterThanOrEqual(40_001);
    const relayed = await registerServer(owner, id);
    expect(relayed.public_endpoint).toBe(`relay.example.com:${own.reserved_udp_port}`);
  });
});

test("a relay receives the number of its reserved ports, for the operator's metrics", async () => {
  const first = await connectRelay(5);
  const { relayId } = first.hello;
  const { id } = await createNetwork(owner);
  await registerServer(owner, id, { relay_id: relayId });
  first[Symbol.dispose]();
  using again = await RelayLink.connect(api.server, { ...first.hello, epoch: crypto.randomUUID() });
  await vi.waitFor(() => {
    expect(again.reservedPorts).toEqual({ type: "ports", reservedUdp: 1, reservedTcp: 0 });
  }, WAIT_OPTIONS);
});

describe("a ticket", () => {
  test("lets an agent serve the network's port at its relay, by the service's public keys", async () => {
    const { id } = await createNetwork(owner);
    expect((await requestTicket(id)).body.error).toBe("server_not_registered");
    const network = await registerServer(owner, id);
    const token = await mintToken(owner, { bandwidthLimitMbps: 33 });
    const agent = createCaller(api.server, { authorization: `Bearer ${token.wireBytes}` });
    const { status, body } = await requestTicket(id, agent);
    expect([status, body.relay, body.port]).toEqual([
      200,
      { id: "main", url: "ws://relay.example.com:40000", host: "relay.example.com" },
      network.reserved_udp_port,
    ]);
    const keys = createRemoteJWKSet(new URL(`${api.server.url}/.well-known/jwks.json`));
    const { payload } = await jwtVerify(body.ticket, keys, {
      typ: RELAY_TICKET_TYPE,
      audience: toRelayAudience("main"),
      algorithms: ["ES256"],
    });
    expect(RelayTicket.parse(payload)).toEqual({
      kind: "network",
      sub: id,
      org: owner.orgId,
      port: network.reserved_udp_port,
      server_public_key: network.server_public_key,
      generation: expect.any(Number),
      mbps: 33,
      nonce: token.nonce,
      exp: Date.parse(body.expires_at) / 1000,
    });
    const leftMs = Date.parse(body.expires_at) - Date.now();
    expect(leftMs).toBeGreaterThan(290_000);
    expect(leftMs).toBeLessThanOrEqual(300_000);
  });

  test("is not issued to an organization that is waiting for approval", async () => {
    const person = await api.owner();
    const { id } = await createNetwork(person);
    await registerServer(person, id);
    await api.sql("update organizations set approval_status = 'pending' where id = $1", [
      person.orgId,
    ]);
    expect((await requestTicket(id, person)).status).toBe(403);
  });

  test("is not accepted as an access token, nor an access token as a ticket", async () => {
    const { id } = await createNetwork(owner);
    await registerServer(owner, id);
    const { ticket } = (await requestTicket(id)).body;
    const caller = createCaller(api.server, { authorization: `Bearer ${ticket}` });
    expect((await caller.get("/private-networks")).status).toBe(401);
  });
});

describe("the relay is notified", () => {
  test("of a changed key or listen port, a removed server and a deleted network, and not of the same server", async () => {
    const { id } = await createNetwork(owner);
    const key = newKey();
    await registerServer(owner, id, { server_public_key: key });
    await registerServer(owner, id, { server_public_key: key });
    await registerServer(owner, id, { server_public_key: key, server_listen_port: 9 });
    await registerServer(owner, id);
    await relay.waitForMessage({ kind: "network", id, reason: "server_changed" });
    await owner.delete(`/private-networks/${id}/server`);
    await registerServer(owner, id);
    await owner.delete(`/private-networks/${id}`);
    await relay.waitForMessage({ kind: "network", id, reason: "network_deleted" });
    const isOwn = (message: ApiToRelayMessage) => message.type === "revoke" && message.id === id;
    const reasons = relay.received
      .filter(isOwn)
      .map((message) => message.type === "revoke" && message.reason);
    expect(reasons).toEqual([...Array<string>(3).fill("server_changed"), "network_deleted"]);
  });

  test("of a move to another relay, and so is the old relay", async () => {
    using other = await connectRelay(2);
    const { id } = await createNetwork(owner);
    await registerServer(owner, id, { relay_id: other.hello.relayId });
    await registerServer(owner, id, { relay_id: "main" });
    await other.waitForMessage({ id, reason: "server_changed" });
  });

  test("of a revoked token and of a removed member", async () => {
    const { id } = await createNetwork(owner);
    await registerServer(owner, id);
    const { nonce } = await mintToken(owner);
    await owner.delete(`/tokens/${nonce}`);
    await relay.waitForMessage({ kind: "network", tokenNonce: nonce, reason: "unauthorized" });
    const member = await api.colleague(owner, "member");
    await owner.delete(`/orgs/${owner.orgId}/members/${member.userId}`);
    await relay.waitForMessage({ kind: "network", tokenNonce: member.userId.replaceAll("-", "") });
  });

  test("of a member who becomes a viewer", async () => {
    await registerServer(owner, (await createNetwork(owner)).id);
    const member = await api.colleague(owner, "member");
    await owner.patch(`/orgs/${owner.orgId}/members/${member.userId}`, { role: "viewer" });
    await relay.waitForMessage({ kind: "network", tokenNonce: member.userId.replaceAll("-", "") });
  });

  test("of a revoked token, whose tickets that were signed during the revocation are refused too", async () => {
    const { id } = await createNetwork(owner);
    await registerServer(owner, id);
    const { nonce, wireBytes } = await mintToken(owner);
    const agent = createCaller(api.server, { authorization: `Bearer ${wireBytes}` });
    await api.sql("begin");
    await api.sql("lock table audit_events in exclusive mode");
    const revoking = owner.delete(`/tokens/${nonce}`);
    await waitForBlockedStatement(api);
    const { ticket } = (await requestTicket(id, agent)).body;
    await api.sql("rollback");
    await revoking;
    await relay.waitForMessage({ kind: "network", tokenNonce: nonce });
    const { generation } = RelayTicket.parse(decodeJwt(ticket));
    const revocation = relay.received.find(
      (message) => message.type === "revoke" && message.tokenNonce === nonce,
    );
    expect(revocation).toMatchObject({ type: "revoke" });
    expect((revocation as Revocation).untilGeneration).toBeGreaterThanOrEqual(generation);
  });

  test("when it reconnects, of everything that happened in the meantime", async () => {
    using disconnected = await connectRelay(2);
    const { relayId } = disconnected.hello;
    const { id } = await createNetwork(owner);
    await registerServer(owner, id, { relay_id: relayId });
    await disconnected.close();
    expect((await owner.delete(`/private-networks/${id}`)).status).toBe(200);
    using reconnected = await RelayLink.connect(api.server, { relayId });
    await reconnected.waitForMessage({ id, reason: "network_deleted" });
  });
});

describe("the report of a relay", () => {
  test("is shown for the network and its devices, until the relay disconnects", async () => {
    using reporting = await connectRelay(2);
    const { id } = await createNetwork(owner);
    await registerServer(owner, id, { relay_id: reporting.hello.relayId });
    const { device } = await enroll(owner, id);
    const lastSeenAtMs = Date.now();
    const status = {
      networkId: id,
      orgId: owner.orgId,
      state: "udp" as const,
      latencyMs: 23.5,
      loss: 0.001,
      lastSeenAtMs,
      isLocalListening: true,
      wrongKeyHandshakes: 2,
      devices: [
        {
          publicKey: device.public_key,
          lastHandshakeAtMs: lastSeenAtMs,
          endpoint: "198.51.100.7:4321",
          rxBytes: 5_000_000_000,
          txBytes: 7,
        },
      ],
    };
    reporting.report({ networks: [status] });
    const lastSeenAt = new Date(lastSeenAtMs).toISOString();
    const relayed = {
      state: "udp",
      latency_ms: 23.5,
      loss: 0.001,
      last_seen_at: lastSeenAt,
      server_listening: true,
      wrong_key_handshakes: 2,
    };
    await vi.waitFor(async () => expect((await read(id)).relay).toEqual(relayed), WAIT_OPTIONS);
    const { body: list } = await owner.get<PrivateNetwork[]>("/private-networks");
    expect(list.find((network) => network.id === id)!.relay).toEqual(relayed);
    const devices = `/private-networks/${id}/devices`;
    expect((await owner.get<Device[]>(devices)).body).toEqual([
      {
        ...device,
        last_handshake_at: lastSeenAt,
        endpoint: "198.51.100.7:4321",
        rx_bytes: 5_000_000_000,
        tx_bytes: 7,
      },
    ]);
    await reporting.close();
    const offline = { state: "offline", latency_ms: null, loss: null, last_seen_at: lastSeenAt };
    await expect.poll(async () => (await read(id)).relay, WAIT_OPTIONS).toMatchObject(offline);
    expect((await owner.get<Device[]>(devices)).body).toMatchObject([{ tx_bytes: 7 }]);
  });
});

describe("a relay's link", () => {
  test("requires the secret, an id and a WebSocket", async () => {
    for (const secret of ["x", `${RELAY_SECRET}x`, ""]) {
      await expect(RelayLink.connect(api.server, { secret })).rejects.toThrow("401");
    }
    await expect(RelayLink.connect(api.server, { relayId: "No Id" })).rejects.toThrow("400");
    const relayWithSecret = createCaller(api.server, {
      authorization: `Bearer ${RELAY_SECRET}`,
    });
    expect((await relayWithSecret.get("/relays/connect?relay_id=main")).status).toBe(426);
    expect((await owner.get("/relays/connect?relay_id=main")).status).toBe(401);
    expect((await relayWithSecret.get("/private-networks")).status).toBe(401);
  });

  test("is shown by /ready, which is ready without it too", async () => {
    expect(await readRelayState()).toBe("connected");
    expect(api.server.output).not.toContain(RELAY_SECRET);
  });
});
