/** Relay tickets of TCP tunnels: which agent gets one for which port, and which events revoke it. */
import { createRemoteJWKSet, jwtVerify } from "jose";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import { RELAY_TICKET_TYPE, toRelayAudience, RelayTicket } from "../../../protocol/relay/ticket.ts";
import type { Connection } from "../../../protocol/schemas/tunnels/connections.ts";
import type { RelayAccess } from "../../../protocol/schemas/networks.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  createCaller,
  getSocket,
  mintToken,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { holdPort } from "../../harness/relay/tcp/held-ports.ts";
import { RelayLink } from "../../harness/server/relay-link.ts";

let api: TestApi;
let owner: Person;
let relay: RelayLink;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
  relay = await RelayLink.connect(api.server, { firstPort: 40_001, lastPort: 40_300 });
});
afterAll(async () => {
  relay[Symbol.dispose]();
  await api.stop();
});

let names = 0;
function newName(): string {
  names += 1;
  return `ticket-${names}`;
}
const formatOutcome = ({ status, body }: { status: number; body: { error?: string } }) =>
  `${status} ${body.error ?? "ok"}`;
const findTunnel = async (id: string, by: Person = owner) =>
  (await by.get<Tunnel[]>("/tunnels")).body.find((tunnel) => tunnel.id === id)!;
const connect = (wireBytes: string, query: Record<string, string | number>) =>
  api.connectAgent(wireBytes, { port: 5432, protocol: "tcp", ...query });

describe("a ticket for the relay", () => {
  const createAgentCaller = (wireBytes: string) =>
    createCaller(api.server, { authorization: `Bearer ${wireBytes}` });
  const requestTicket = (id: string, wireBytes: string) =>
    createAgentCaller(wireBytes).post<RelayAccess & ErrorBody>(`/tunnels/${id}/relay-ticket`);

  async function serveTunnel(scope: object = {}) {
    const token = await mintToken(owner, scope);
    const subdomain = newName();
    const agent = await connect(token.wireBytes, { subdomain, allow: "192.0.2.0/24" });
    const { body } = await owner.get<Tunnel[]>("/tunnels");
    return { token, agent, tunnel: body.find((each) => each.subdomain === subdomain)! };
  }

  /** A tunnel that an agent serves at a relay of its own. */
  async function serveAtOwnRelay(range: { firstPort: number; lastPort: number }) {
    const relayId = `relay-${crypto.randomUUID().slice(0, 8)}`;
    const link = await RelayLink.connect(api.server, { relayId, ...range });
    const token = await mintToken(owner);
    const subdomain = newName();
    const { body: tunnel } = await owner.post<Tunnel>("/tunnels", {
      ...{ localPort: 5432, protocol: "tcp", subdomain, relayId },
    });
    await connect(token.wireBytes, { subdomain });
    return { link, caller: createAgentCaller(token.wireBytes), tunnel };
  }

  test("is for the tunnel that the token's agent serves, with its limits", async () => {
    const { token, tunnel } = await serveTunnel({ bandwidthLimitMbps: 7 });
    const { status, body } = await requestTicket(tunnel.id, token.wireBytes);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      port: tunnel.publicPort,
      relay: { id: "main", host: "relay.example.com", url: "ws://relay.example.com:40000" },
    });
    const keys = createRemoteJWKSet(new URL("/.well-known/jwks.json", api.server.url));
    const { payload } = await jwtVerify(body.ticket, keys, {
      audience: toRelayAudience("main"),
      typ: RELAY_TICKET_TYPE,
    });
    expect(RelayTicket.parse(payload)).toMatchObject({
      kind: "tunnel",
      sub: tunnel.id,
      org: owner.orgId,
      port: tunnel.publicPort,
      mbps: 7,
      nonce: token.nonce,
      cidrs: ["192.0.2.0/24"],
    });
  });

  test("is for another port of the same relay when its range no longer contains the tunnel's", async () => {
    const relayId = `relay-${crypto.randomUUID().slice(0, 8)}`;
    const before = await RelayLink.connect(api.server, {
      relayId,
      firstPort: 50_001,
      lastPort: 50_001,
    });
    const token = await mintToken(owner);
    const subdomain = newName();
    const { body: tunnel } = await owner.post<Tunnel>("/tunnels", {
      ...{ localPort: 5432, protocol: "tcp", subdomain, relayId },
    });
    await connect(token.wireBytes, { subdomain });
    expect((await requestTicket(tunnel.id, token.wireBytes)).body.port).toBe(50_001);
    await before.close();
    using _ = await RelayLink.connect(api.server, { relayId, firstPort: 50_011, lastPort: 50_012 });
    const moved = await waitUntil(async () => {
      const { body } = await requestTicket(tunnel.id, token.wireBytes);
      return body.port > 50_010 && body;
    });
    expect(moved.relay.id).toBe(relayId);
    expect((await findTunnel(tunnel.id)).publicPort).toBe(moved.port);
    expect((await requestTicket(tunnel.id, token.wireBytes)).body.port).toBe(moved.port);
    await api.sql("update relays set first_port = 2, last_port = 1 where id = $1", [relayId]);
    const exhausted = await requestTicket(tunnel.id, token.wireBytes);
    expect(formatOutcome(exhausted)).toBe("503 unavailable");
  });

  test("is for another port when the relay can't listen on one that was not asked for and never served", async () => {
    const { token, tunnel } = await serveTunnel();
    const caller = createAgentCaller(token.wireBytes);
    const request = async (unusablePort?: number) => {
      const query = unusablePort === undefined ? "" : `?unusable_port=${unusablePort}`;
      return (await caller.post<RelayAccess>(`/tunnels/${tunnel.id}/relay-ticket${query}`)).body;
    };
    const first = await request();
    expect(first).toMatchObject({ port: tunnel.publicPort, port_replaceable: true });
    const moved = await request(first.port);
    expect(moved.port).not.toBe(first.port);
    expect(moved).toMatchObject({ port_replaceable: true, relay: { id: "main" } });
    expect((await findTunnel(tunnel.id)).publicPort).toBe(moved.port);
    // An agent that reports the earlier port again, or asks for its second ticket, keeps the port.
    expect(await request(first.port)).toMatchObject({ port: moved.port, port_replaceable: false });
    // A port that was asked for, also after it was assigned.
    const port = await holdPort(owner);
    getSocket(await connect(token.wireBytes, { subdomain: newName(), remote_port: port }));
    const { body } = await owner.get<Tunnel[]>("/tunnels");
    const asked = body.find(({ publicPort }) => publicPort === port)!;
    expect((await requestTicket(asked.id, token.wireBytes)).body.port_replaceable).toBe(false);
    const subdomain = newName();
    const { body: later } = await owner.post<Tunnel>("/tunnels", {
      ...{ localPort: 5432, protocol: "tcp", subdomain },
    });
    await connect(token.wireBytes, { subdomain, remote_port: later.publicPort! });
    expect((await requestTicket(later.id, token.wireBytes)).body.port_replaceable).toBe(false);
  });

  test("is for the same port when the relay can't listen on it and no other one is free", async () => {
    const served = await serveAtOwnRelay({ firstPort: 50_001, lastPort: 50_001 });
    using _ = served.link;
    const { caller, tunnel } = served;
    const path = `/tunnels/${tunnel.id}/relay-ticket?unusable_port=50001`;
    expect(await caller.post(path)).toMatchObject({ status: 200, body: { port: 50_001 } });
    expect(await findTunnel(tunnel.id)).toMatchObject({ publicPort: 50_001 });
  });

  test("takes no more ports than the organization's share, however many its agent calls unusable", async () => {
    await api.owner();
    const served = await serveAtOwnRelay({ firstPort: 50_011, lastPort: 50_016 });
    using _ = served.link;
    const { caller, tunnel } = served;
    const ports = new Set<number>();
    let port = tunnel.publicPort!;
    for (let i = 0; i < 8; i++) {
      const path = `/tunnels/${tunnel.id}/relay-ticket?unusable_port=${port}`;
      const { status, body } = await caller.post<RelayAccess>(path);
      expect(status).toBe(200);
      port = body.port;
      ports.add(port);
    }
    expect(ports.size).toBe(3);
  });

  test("is refused to all others", async () => {
    const { token, tunnel } = await serveTunnel();
    const other = await mintToken(owner);
    expect(formatOutcome(await requestTicket(tunnel.id, other.wireBytes))).toBe("403 forbidden");
    const foreignToken = await mintToken(await api.owner());
    expect(formatOutcome(await requestTicket(tunnel.id, foreignToken.wireBytes))).toBe(
      "404 not_found",
    );
    const unknownId = crypto.randomUUID();
    expect(formatOutcome(await requestTicket(unknownId, token.wireBytes))).toBe("404 not_found");
    for (const bearer of ["invalid", owner.accessToken]) {
      expect(formatOutcome(await requestTicket(tunnel.id, bearer))).toBe("401 unauthorized");
    }
    const anonymousReply = await api.anonymous.post<ErrorBody>(
      `/tunnels/${tunnel.id}/relay-ticket`,
    );
    expect(formatOutcome(anonymousReply)).toBe("401 unauthorized");
    const http = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
    expect(formatOutcome(await requestTicket(http.body.id, token.wireBytes))).toBe(
      "400 invalid_request",
    );
  });

  test("is refused once the tunnel is stopped or expired, or the token revoked or over its budget", async () => {
    const { token, tunnel } = await serveTunnel();
    await owner.post(`/tunnels/${tunnel.id}/stop`);
    expect(formatOutcome(await requestTicket(tunnel.id, token.wireBytes))).toBe("409 conflict");
    await owner.post(`/tunnels/${tunnel.id}/start`);
    await api.sql("update tunnels set expires_at = now() where id = $1", [tunnel.id]);
    expect(formatOutcome(await requestTicket(tunnel.id, token.wireBytes))).toBe("410 expired");
    await api.sql("update tunnels set expires_at = null where id = $1", [tunnel.id]);
    expect(formatOutcome(await requestTicket(tunnel.id, token.wireBytes))).toBe("200 ok");
    await owner.put(`/tokens/${token.nonce}/budget`, { monthlyBudgetUsdCents: 0 });
    expect(formatOutcome(await requestTicket(tunnel.id, token.wireBytes))).toBe("403 forbidden");
    await owner.delete(`/tokens/${token.nonce}`);
    expect(formatOutcome(await requestTicket(tunnel.id, token.wireBytes))).toBe("401 unauthorized");
    await owner.delete(`/tunnels/${tunnel.id}`);
  });

  test("is revoked when its tunnel is stopped, its token revoked, or its connection ended", async () => {
    const first = await serveTunnel();
    const { id } = first.tunnel;
    const connection = await waitUntil(async () => {
      const { body } = await owner.get<Connection[]>("/connections");
      return body.find(({ tunnels }) => tunnels.includes(id));
    });
    await owner.delete(`/connections/${connection.agent_id}`);
    await relay.waitForMessage({ type: "revoke", id, reason: "connection_ended" });
    await owner.post(`/tunnels/${id}/stop`);
    await relay.waitForMessage({ type: "revoke", id, reason: "tunnel_stopped" });
    await owner.delete(`/tokens/${first.token.nonce}`);
    await relay.waitForMessage({ type: "revoke", id, reason: "unauthorized" });
    await owner.delete(`/tunnels/${id}`);
    await relay.waitForMessage({ type: "revoke", id, reason: "tunnel_deleted" });
  });

  test("leads to traffic that is counted, charged and shown", async () => {
    const { token, tunnel } = await serveTunnel();
    const usage = {
      tunnelId: tunnel.id,
      source: "epoch/1",
      tokenNonce: token.nonce,
      connections: 3,
      openConnections: 1,
      bytesIn: 1_000,
      bytesOut: 2_000,
    };
    relay.report({ tunnels: [usage] });
    relay.report({ tunnels: [usage] });
    await vi.waitFor(async () => {
      expect(await findTunnel(tunnel.id)).toMatchObject({
        bytesIn: 1_000,
        bytesOut: 2_000,
        totalRequests: 3,
      });
    }, WAIT_OPTIONS);
    const prometheus = await owner.get<string>("/metrics/prometheus");
    expect(prometheus.body).toContain('underpass_requests_total{code="tcp"} 3');
  });
});
