/** The Worker of the tests inside workerd: the real objects, and the internal API in memory. */
import { WorkerEntrypoint } from "cloudflare:workers";
import type { JSONWebKeySet, JWK } from "jose";
import type {
  RelayDescription,
  Route,
  InternalApi as InternalApiCalls,
  TunnelReport,
  WatcherCredential,
} from "../../../durable-objects/rpc.ts";
import type { ReceiverSettings } from "../../../durable-objects/receiver/settings.ts";
import type { Tunnel } from "../../../durable-objects/tunnel.ts";

export { RateLimiter } from "../../../durable-objects/rate-limiter.ts";
export { Directory } from "../../../durable-objects/directory.ts";
export { Organization } from "../../../durable-objects/organization.ts";
export { Receiver } from "../../../durable-objects/receiver.ts";
export { Relay } from "../../../durable-objects/relay.ts";
export { Tunnel } from "../../../durable-objects/tunnel.ts";

/** The calls that objects made, and the results that they get. */
export const rows = {
  reports: [] as TunnelReport[],
  routes: new Map<string, Route>(),
  /** The hosts and receivers whose rows were read, once for each call. */
  reads: [] as string[],
  receivers: new Map<string, ReceiverSettings>(),
  /** Organizations by the ids of their tunnels. */
  tunnelOwners: new Map<string, string>(),
  tokenKeys: [] as JWK[],
  endedSessions: new Set<string>(),
  /** Whether calls about sessions and relays fail. */
  isDatabaseDown: false,
  /** The milliseconds that tunnels have left. Others have expired. */
  remainingMs: new Map<string, number>(),
  /** Relays that are connected. */
  relays: new Map<string, RelayDescription>(),
  /** The answer to `relayDisconnected`, which takes effect before it. */
  relayDisconnecting: Promise.resolve(),
  reservedPorts: { udp: 0, tcp: 0 },
  /** Tunnels whose calls fail. */
  failingTunnels: new Set<string>(),
};

export class InternalApi
  extends WorkerEntrypoint<{ TUNNEL: DurableObjectNamespace<Tunnel> }>
  implements InternalApiCalls
{
  findRoutes(hosts: string[]): Promise<Map<string, Route>> {
    rows.reads.push(...hosts);
    const found = hosts.flatMap((host): [string, Route][] => {
      const route = rows.routes.get(host);
      return route ? [[host, route]] : [];
    });
    return Promise.resolve(new Map(found));
  }

  findReceiverIds(ids: string[]): Promise<string[]> {
    rows.reads.push(...ids);
    return Promise.resolve(ids.filter((id) => rows.receivers.has(id)));
  }

  reportTunnel(report: TunnelReport): Promise<void> {
    if (rows.failingTunnels.has(report.tunnelId)) return Promise.reject(new Error("no database"));
    rows.reports.push(report);
    return Promise.resolve();
  }

  async expireTunnelIfDue(tunnelId: string): Promise<number | null> {
    if (rows.failingTunnels.has(tunnelId)) throw new Error("no database");
    const leftMs = rows.remainingMs.get(tunnelId);
    if (leftMs !== undefined) return leftMs;
    await this.env.TUNNEL.getByName(tunnelId).retire("expired");
    return null;
  }

  findTunnelOwner(tunnelId: string): Promise<string | null> {
    return Promise.resolve(rows.tunnelOwners.get(tunnelId) ?? null);
  }

  findReceiverSettings(receiverId: string): Promise<ReceiverSettings | null> {
    rows.reads.push(receiverId);
    return Promise.resolve(rows.receivers.get(receiverId) ?? null);
  }

  findLiveWatchers(_orgId: string, watchers: WatcherCredential[]): Promise<string[]> {
    if (rows.isDatabaseDown) return Promise.reject(new Error("the database is unavailable"));
    const live = watchers.map(({ credentialId }) => credentialId);
    return Promise.resolve(live.filter((id) => !rows.endedSessions.has(id)));
  }

  relayConnected(relay: RelayDescription): Promise<void> {
    if (rows.isDatabaseDown) return Promise.reject(new Error("the database is unavailable"));
    rows.relays.set(relay.relayId, relay);
    return Promise.resolve();
  }

  relayDisconnected(relayId: string, epoch: string): Promise<void> {
    if (rows.isDatabaseDown) return Promise.reject(new Error("the database is unavailable"));
    if (rows.relays.get(relayId)?.epoch === epoch) rows.relays.delete(relayId);
    return rows.relayDisconnecting;
  }

  countReservedPorts(): Promise<{ udp: number; tcp: number }> {
    if (rows.isDatabaseDown) return Promise.reject(new Error("the database is unavailable"));
    return Promise.resolve(rows.reservedPorts);
  }

  getAccessTokenJwks(): Promise<JSONWebKeySet> {
    return Promise.resolve({ keys: rows.tokenKeys });
  }
}

export default {
  fetch: () => new Response(null, { status: 404 }),
} satisfies ExportedHandler;
