/** A TCP tunnel and its relay: traffic is counted once, and revocations reach the relay. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { describe, expect, test } from "vitest";
import { ERROR_HEADER } from "../../../../protocol/errors.ts";
import type { ApiToRelayMessage, AssociationUsage } from "../../../../protocol/relay/link.ts";
import type { TestRelayLink } from "../../../harness/workerd/live-relay.ts";
import { RefusedError } from "../../../harness/workerd/live-tunnel.ts";
import { rows } from "../../../harness/workerd/objects.ts";
import { TcpTunnel } from "../../../harness/workerd/tcp-tunnel.ts";

const usage = (tunnel: TcpTunnel, change: Partial<AssociationUsage> = {}): AssociationUsage => ({
  tunnelId: tunnel.id,
  source: "epoch-1/1",
  tokenNonce: "token-a",
  connections: 1,
  openConnections: 1,
  bytesIn: 10,
  bytesOut: 20,
  ...change,
});
const month = new Date().toISOString().slice(0, 7);

describe("traffic through a relay is counted", () => {
  test("once, however often and in whatever order the totals are reported", async () => {
    const tunnel = new TcpTunnel();
    await tunnel.agent();
    for (const bytesIn of [10, 10, 30, 20, 30]) {
      await tunnel.stub.addRelayedUsage(usage(tunnel, { bytesIn }));
    }
    await tunnel.stub.addRelayedUsage(
      usage(tunnel, { source: "epoch-1/2", connections: 2, bytesIn: 5 }),
    );
    const report = await tunnel.stub.sendReport();
    expect(report).toMatchObject({ requests: 3, bytesIn: 35, bytesOut: 40 });
    expect(report?.counters).toMatchObject({ "requests:tcp": 3 });
    const minute = report?.traffic.find(({ grain }) => grain === "minute");
    expect(minute).toMatchObject({ requests: 3, bytesIn: 35, bytesOut: 40 });
  });

  test("once across an eviction of the object", async () => {
    const tunnel = new TcpTunnel();
    await tunnel.agent();
    await tunnel.stub.addRelayedUsage(usage(tunnel));
    await tunnel.sleep();
    await tunnel.stub.addRelayedUsage(usage(tunnel, { bytesIn: 15 }));
    await tunnel.sleep();
    const report = await tunnel.stub.sendReport();
    expect(report).toMatchObject({ requests: 1, bytesIn: 15, bytesOut: 20 });
    const minutes = report?.traffic.filter(({ grain }) => grain === "minute") ?? [];
    expect(minutes.reduce((sum, { bytesIn }) => sum + bytesIn, 0)).toBe(15);
    const spent = { tokenNonce: "token-a", month, bytes: 35, requests: 1 };
    expect(report?.spending).toEqual([spent]);
  });

  test("for the token of its agent, also when none is connected", async () => {
    const tunnel = new TcpTunnel();
    const agent = await tunnel.agent();
    await tunnel.stub.addRelayedUsage(usage(tunnel, { tokenNonce: "token-b" }));
    agent.socket.close(1011, "lost");
    await tunnel.stub.addRelayedUsage(usage(tunnel, { bytesIn: 11, tokenNonce: "token-b" }));
    const spending = (await tunnel.stub.sendReport())?.spending;
    const reports = rows.reports.filter(({ tunnelId }) => tunnelId === tunnel.id);
    const last = reports.flatMap((report) => report.spending).concat(spending ?? []);
    expect(last.at(-1)).toEqual({ tokenNonce: "token-b", month, bytes: 31, requests: 1 });
    expect(last.some(({ tokenNonce }) => tokenNonce === "token-a")).toBe(false);
  });
});

describe("the relay is notified when", () => {
  const revoke = (tunnel: TcpTunnel, change: object): object => ({
    type: "revoke",
    kind: "tunnel",
    id: tunnel.id,
    untilGeneration: expect.any(Number) as number,
    ...change,
  });

  test.each<[string, (tunnel: TcpTunnel) => Promise<unknown>, object]>([
    [
      "stopped",
      (tunnel) => tunnel.stub.setStopState({ version: 1, isStopped: true }),
      { reason: "tunnel_stopped" },
    ],
    ["deleted", (tunnel) => tunnel.stub.retire(), { reason: "tunnel_deleted" }],
    ["expired", (tunnel) => tunnel.stub.retire("expired"), { reason: "tunnel_expired" }],
    [
      "revoked",
      (tunnel) => tunnel.stub.revokeToken("token-a"),
      { reason: "unauthorized", tokenNonce: "token-a" },
    ],
    [
      "over budget",
      (tunnel) => tunnel.stub.disconnectOverBudget("token-a"),
      { reason: "BUDGET_EXCEEDED", tokenNonce: "token-a" },
    ],
    [
      "disconnected",
      async (tunnel) => {
        const [agent] = (await tunnel.stub.getPresence())!.agents;
        await tunnel.stub.disconnectAgent(agent!.agentId);
      },
      { reason: "connection_ended", tokenNonce: "token-a" },
    ],
  ])("%s", async (_, end, expected) => {
    const tunnel = new TcpTunnel();
    const link = await tunnel.relay.link();
    const agent = await tunnel.agent();
    await tunnel.sleep();
    const before = Date.now();
    await end(tunnel);
    const revocation = await link.next();
    expect(revocation).toEqual(revoke(tunnel, expected));
    expect((revocation as { untilGeneration: number }).untilGeneration).toBeGreaterThanOrEqual(
      before,
    );
    await agent.closed;
  });

  test("but not when the connection was lost or the same agent reconnects", async () => {
    const tunnel = new TcpTunnel();
    const link = await tunnel.relay.link();
    const lost = await tunnel.agent();
    lost.socket.close(1011, "lost");
    await tunnel.agent();
    await tunnel.agent();
    await tunnel.stub.setStopState({ version: 1, isStopped: true });
    expect(await link.next()).toMatchObject({ reason: "tunnel_stopped" });
  });

  test("the tunnel moves to another port, at the previous relay", async () => {
    const tunnel = new TcpTunnel();
    const link = await tunnel.relay.link();
    await tunnel.agent();
    await tunnel.agent({ relay: { id: tunnel.relay.id, port: 40_002 } });
    await runDurableObjectAlarm(tunnel.stub);
    expect(await link.next()).toEqual(revoke(tunnel, { reason: "connection_ended", port: 40_001 }));
  });

  test("the tunnel becomes private, at its previous relay", async () => {
    const tunnel = new TcpTunnel();
    const link = await tunnel.relay.link();
    await tunnel.agent();
    await tunnel.agent({ relay: null });
    await runDurableObjectAlarm(tunnel.stub);
    expect(await link.next()).toEqual(revoke(tunnel, { reason: "connection_ended", port: 40_001 }));
  });
});

describe("the allowlist of a TCP tunnel", () => {
  const settings = (version: number, allowedCidrs: string[] | null) => ({
    version,
    realm: "shop",
    basicAuth: null,
    policy: null,
    allowedCidrs,
  });
  const cidrsIn = (message: ApiToRelayMessage) =>
    message.type === "allowed_cidrs" ? message.cidrs : undefined;
  const nextCidrs = async (link: TestRelayLink) => cidrsIn(await link.next());

  test("is sent to its relay, and an old one never after a new one", async () => {
    const tunnel = new TcpTunnel();
    const link = await tunnel.relay.link();
    await tunnel.agent();
    await tunnel.stub.publishAccessSettings(settings(2, ["192.0.2.0/24"]));
    expect(await nextCidrs(link)).toEqual(["192.0.2.0/24"]);
    await tunnel.stub.publishAccessSettings(settings(1, ["198.51.100.0/24"]));
    expect(await nextCidrs(link)).toEqual(["192.0.2.0/24"]);
    await tunnel.sleep();
    await tunnel.stub.publishAccessSettings(settings(3, null));
    expect(await nextCidrs(link)).toBe(null);
  });
});

test.each([
  ["a TCP tunnel", {}],
  ["a private one", { relay: null }],
])("an HTTP request to %s finds no tunnel", async (_, admission) => {
  const tunnel = new TcpTunnel();
  await tunnel.agent(admission);
  const response = await tunnel.visit("/");
  expect([response.status, response.headers.get(ERROR_HEADER)]).toEqual([404, "tunnel_not_found"]);
  await tunnel.sleep();
  expect((await tunnel.visit("/")).status).toBe(404);
});

test("a retired tunnel accepts no clients and no agents", async () => {
  const tunnel = new TcpTunnel();
  await tunnel.agent();
  await tunnel.stub.retire();
  await expect(tunnel.connectClient()).rejects.toBeInstanceOf(RefusedError);
  await expect(tunnel.agent()).rejects.toBeInstanceOf(RefusedError);
});
