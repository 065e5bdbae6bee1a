/** The Worker of the tests inside workerd: the objects themselves, and rows that only remember. */
import { WorkerEntrypoint } from "cloudflare:workers";
import type { JSONWebKeySet, JWK } from "jose";
import type {
  RelayDescription,
  Route,
  Rows as RowsBinding,
  TunnelReport,
  WatcherSession,
} from "../../../durable-objects/rpc.ts";
import type { ReceiverSettings } from "../../../durable-objects/receiver/settings.ts";
import type { Tunnel } from "../../../durable-objects/tunnel.ts";

export { RateLimiter } from "../../../durable-objects/rate-limiter.ts";
export { Hostname } from "../../../durable-objects/hostname.ts";
export { Organization } from "../../../durable-objects/organization.ts";
export { Receiver } from "../../../durable-objects/receiver.ts";
export { Relay } from "../../../durable-objects/relay.ts";
export { Tunnel } from "../../../durable-objects/tunnel.ts";

/** What the objects told and asked, and what they are answered. */
export const rows = {
  reports: [] as TunnelReport[],
  routes: new Map<string, Route>(),
  /** Hosts whose row was read, once for each reading. */
  asked: [] as string[],
  receivers: new Map<string, ReceiverSettings>(),
  tokenKeys: [] as JWK[],
  endedSessions: new Set<string>(),
  /** Whether sessions can't be asked for. */
  areAway: false,
  /** Of a tunnel whose time is not over yet. */
  left: new Map<string, number>(),
  /** Relays that are connected. */
  relays: new Map<string, RelayDescription>(),
  reservedPorts: { udp: 0, tcp: 0 },
  /** Tunnels whose reports can't be taken. */
  failing: new Set<string>(),
};

export class Rows
  extends WorkerEntrypoint<{ TUNNEL: DurableObjectNamespace<Tunnel> }>
  implements RowsBinding
{
  route(host: string): Promise<Route | null> {
    rows.asked.push(host);
    return Promise.resolve(rows.routes.get(host) ?? null);
  }

  reportTunnel(report: TunnelReport): Promise<void> {
    if (rows.failing.has(report.tunnelId)) return Promise.reject(new Error("no database"));
    rows.reports.push(report);
    return Promise.resolve();
  }

  async expireTunnel(tunnelId: string): Promise<number | null> {
    const leftMs = rows.left.get(tunnelId);
    if (leftMs !== undefined) return leftMs;
    await this.env.TUNNEL.getByName(tunnelId).retire("expired");
    return null;
  }

  receiver(receiverId: string): Promise<ReceiverSettings | null> {
    rows.asked.push(receiverId);
    return Promise.resolve(rows.receivers.get(receiverId) ?? null);
  }

  liveWatchers(_orgId: string, watchers: WatcherSession[]): Promise<string[]> {
    if (rows.areAway) return Promise.reject(new Error("the rows are away"));
    const live = watchers.map(({ sessionId }) => sessionId);
    return Promise.resolve(live.filter((id) => !rows.endedSessions.has(id)));
  }

  relayConnected(relay: RelayDescription): Promise<void> {
    if (rows.areAway) return Promise.reject(new Error("the rows are away"));
    rows.relays.set(relay.relayId, relay);
    return Promise.resolve();
  }

  relayDisconnected(relayId: string, epoch: string): Promise<void> {
    if (rows.areAway) return Promise.reject(new Error("the rows are away"));
    if (rows.relays.get(relayId)?.epoch === epoch) rows.relays.delete(relayId);
    return Promise.resolve();
  }

  countReservedPorts(): Promise<{ udp: number; tcp: number }> {
    if (rows.areAway) return Promise.reject(new Error("the rows are away"));
    return Promise.resolve(rows.reservedPorts);
  }

  tokenKeys(): Promise<JSONWebKeySet> {
    return Promise.resolve({ keys: rows.tokenKeys });
  }
}

export default {
  fetch: () => new Response(null, { status: 404 }),
} satisfies ExportedHandler;
