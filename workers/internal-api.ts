/**
 * The Worker's entry point to its database, for callers that must not open a database themselves: objects, and requests that
 * last as long as a connection. The store is loaded by the first call, so that an isolate that only runs the edge does
 * not load it.
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import type { JSONWebKeySet } from "jose";
import type {
  RelayDescription,
  Route,
  TunnelReport,
  WatcherCredential,
} from "../durable-objects/rpc.ts";
import type { ReceiverSettings } from "../durable-objects/receiver/settings.ts";
import type { AgentAdmission } from "../durable-objects/tunnel/agents/admission.ts";
import type { Env } from "./env.ts";
import type {
  AgentRequest,
  AgentVerdict,
  ClientRequest,
  ClientVerdict,
  RedeemedTicket,
  InternalApiBinding,
  PresentedTicket,
} from "./internal-api-binding.ts";

export class InternalApi extends WorkerEntrypoint<Env> implements InternalApiBinding {
  async findRoutes(hosts: string[]): Promise<Map<string, Route>> {
    const [{ createDatabase }, { findRoutes }] = await Promise.all([
      import("./jobs/outbox.ts"),
      import("./store/domains/hostnames.ts"),
    ]);
    return findRoutes(createDatabase(this.env), hosts);
  }

  async reportTunnel(report: TunnelReport): Promise<void> {
    const [{ createDatabase }, { applyReport }] = await Promise.all([
      import("./jobs/outbox.ts"),
      import("./store/tunnels/object-sync.ts"),
    ]);
    await applyReport(this.env, createDatabase(this.env), report);
  }

  async expireTunnelIfDue(tunnelId: string): Promise<number | null> {
    const [{ createDatabase }, { expireIfDue }] = await Promise.all([
      import("./jobs/outbox.ts"),
      import("./store/tunnels/lifecycle.ts"),
    ]);
    return expireIfDue(createDatabase(this.env), tunnelId);
  }

  async findTunnelOwner(tunnelId: string): Promise<string | null> {
    const [{ createDatabase }, { findTunnelOwner }] = await Promise.all([
      import("./jobs/outbox.ts"),
      import("./store/tunnels/object-sync.ts"),
    ]);
    return findTunnelOwner(createDatabase(this.env), tunnelId);
  }

  async findReceiverIds(ids: string[]): Promise<string[]> {
    const [{ createDatabase }, { findReceiverIds }] = await Promise.all([
      import("./jobs/outbox.ts"),
      import("./store/webhooks/receivers.ts"),
    ]);
    return findReceiverIds(createDatabase(this.env), ids);
  }

  async findReceiverSettings(receiverId: string): Promise<ReceiverSettings | null> {
    const [{ createDatabase }, { findReceiverSettings }] = await Promise.all([
      import("./jobs/outbox.ts"),
      import("./store/webhooks/receivers.ts"),
    ]);
    return findReceiverSettings(createDatabase(this.env), receiverId);
  }

  async getAccessTokenJwks(): Promise<JSONWebKeySet> {
    const [{ getConfig }, { getAccessTokenKeys }] = await Promise.all([
      import("./config/config.ts"),
      import("./identity/keys.ts"),
    ]);
    const { publicJwks } = await getAccessTokenKeys(getConfig(this.env));
    return { keys: publicJwks };
  }

  async relayConnected(relay: RelayDescription): Promise<void> {
    const [{ createDatabase }, { saveRelay }] = await Promise.all([
      import("./jobs/outbox.ts"),
      import("./store/networks/relays.ts"),
    ]);
    await saveRelay(createDatabase(this.env), relay);
  }

  async relayDisconnected(relayId: string, epoch: string): Promise<void> {
    const [{ createDatabase }, { markRelayDisconnected }] = await Promise.all([
      import("./jobs/outbox.ts"),
      import("./store/networks/relays.ts"),
    ]);
    await markRelayDisconnected(createDatabase(this.env), relayId, epoch);
  }

  async countReservedPorts(relayId: string): Promise<{ udp: number; tcp: number }> {
    const [{ createDatabase }, { countReservedPorts }] = await Promise.all([
      import("./jobs/outbox.ts"),
      import("./store/networks/relays.ts"),
    ]);
    return countReservedPorts(createDatabase(this.env), relayId);
  }

  async findLiveWatchers(orgId: string, watchers: WatcherCredential[]): Promise<string[]> {
    const [{ createDatabase }, { findLiveWatchers }] = await Promise.all([
      import("./jobs/outbox.ts"),
      import("./store/inspector/watching.ts"),
    ]);
    const ids = watchers.map(({ credentialId }) => credentialId);
    return findLiveWatchers(createDatabase(this.env), orgId, ids);
  }

  async redeemVisitorTicket(shown: PresentedTicket): Promise<RedeemedTicket | null> {
    const { redeemVisitorTicket } = await import("./identity/visitors/visitor-tickets.ts");
    return redeemVisitorTicket(this.env, shown);
  }

  async admitAgent(request: AgentRequest): Promise<AgentVerdict> {
    const { admitAgent } = await import("./api/tunnels/admission.ts");
    return admitAgent(this.env, request);
  }

  async admitClient(request: ClientRequest): Promise<ClientVerdict> {
    const { admitClient } = await import("./api/tunnels/stream-admission.ts");
    return admitClient(this.env, request);
  }

  async recheckAdmission(admission: AgentAdmission): Promise<void> {
    const { recheckAdmission } = await import("./api/tunnels/admission.ts");
    await recheckAdmission(this.env, admission);
  }

  async withdrawAdmission(admission: AgentAdmission): Promise<void> {
    const { withdrawAdmission } = await import("./api/tunnels/admission.ts");
    await withdrawAdmission(this.env, admission);
  }
}
