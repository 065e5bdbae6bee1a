/**
 * The Worker's entry point to its rows, for callers that must not open a database themselves: objects, and requests that
 * last as long as a connection. The store is loaded by the first call, so that an isolate that only runs the edge does
 * not load it.
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import type { JSONWebKeySet } from "jose";
import type {
  RelayDescription,
  Route,
  TunnelReport,
  WatcherSession,
} from "../durable-objects/rpc.ts";
import type { ReceiverSettings } from "../durable-objects/receiver/settings.ts";
import type { Admission } from "../durable-objects/tunnel/agents/admission.ts";
import type { Env } from "./env.ts";
import type {
  AgentRequest,
  AgentVerdict,
  ClientRequest,
  ClientVerdict,
  RedeemedTicket,
  RowsBinding,
  PresentedTicket,
} from "./rows-binding.ts";

export class Rows extends WorkerEntrypoint<Env> implements RowsBinding {
  async route(host: string): Promise<Route | null> {
    const [{ openDatabase }, { findRoute }] = await Promise.all([
      import("./jobs/outbox.ts"),
      import("./store/domains/hostnames.ts"),
    ]);
    return findRoute(openDatabase(this.env), host);
  }

  async reportTunnel(report: TunnelReport): Promise<void> {
    const [{ openDatabase }, { applyReport }] = await Promise.all([
      import("./jobs/outbox.ts"),
      import("./store/tunnels/object-sync.ts"),
    ]);
    await applyReport(this.env, openDatabase(this.env), report);
  }

  async expireTunnel(tunnelId: string): Promise<number | null> {
    const [{ openDatabase }, { expireIfDue }] = await Promise.all([
      import("./jobs/outbox.ts"),
      import("./store/tunnels/lifecycle.ts"),
    ]);
    return expireIfDue(openDatabase(this.env), tunnelId);
  }

  async receiver(receiverId: string): Promise<ReceiverSettings | null> {
    const [{ openDatabase }, { findReceiverSettings }] = await Promise.all([
      import("./jobs/outbox.ts"),
      import("./store/webhooks/receivers.ts"),
    ]);
    return findReceiverSettings(openDatabase(this.env), receiverId);
  }

  async tokenKeys(): Promise<JSONWebKeySet> {
    const [{ getConfig }, { getAccessTokenKeys }] = await Promise.all([
      import("./config/config.ts"),
      import("./identity/keys.ts"),
    ]);
    const { publicJwks } = await getAccessTokenKeys(getConfig(this.env));
    return { keys: publicJwks };
  }

  async relayConnected(relay: RelayDescription): Promise<void> {
    const [{ openDatabase }, { saveRelay }] = await Promise.all([
      import("./jobs/outbox.ts"),
      import("./store/networks/relays.ts"),
    ]);
    await saveRelay(openDatabase(this.env), relay);
  }

  async relayDisconnected(relayId: string, epoch: string): Promise<void> {
    const [{ openDatabase }, { markRelayDisconnected }] = await Promise.all([
      import("./jobs/outbox.ts"),
      import("./store/networks/relays.ts"),
    ]);
    await markRelayDisconnected(openDatabase(this.env), relayId, epoch);
  }

  async countReservedPorts(relayId: string): Promise<{ udp: number; tcp: number }> {
    const [{ openDatabase }, { countReservedPorts }] = await Promise.all([
      import("./jobs/outbox.ts"),
      import("./store/networks/relays.ts"),
    ]);
    return countReservedPorts(openDatabase(this.env), relayId);
  }

  async liveWatchers(orgId: string, watchers: WatcherSession[]): Promise<string[]> {
    const [{ openDatabase }, { findLiveWatchers }] = await Promise.all([
      import("./jobs/outbox.ts"),
      import("./store/accounts/live-sessions.ts"),
    ]);
    const ids = watchers.map(({ sessionId }) => sessionId);
    return findLiveWatchers(openDatabase(this.env), orgId, ids);
  }

  async redeemTicket(shown: PresentedTicket): Promise<RedeemedTicket | null> {
    const { redeemTicket } = await import("./identity/visitors/visitor-tickets.ts");
    return redeemTicket(this.env, shown);
  }

  async admit(request: AgentRequest): Promise<AgentVerdict> {
    const { admit } = await import("./api/tunnels/admission.ts");
    return admit(this.env, request);
  }

  async admitClient(request: ClientRequest): Promise<ClientVerdict> {
    const { admitClient } = await import("./api/tunnels/stream-admission.ts");
    return admitClient(this.env, request);
  }

  async confirmAdmission(admission: Admission): Promise<void> {
    const { confirmAdmission } = await import("./api/tunnels/admission.ts");
    await confirmAdmission(this.env, admission);
  }

  async withdrawAdmission(admission: Admission): Promise<void> {
    const { withdrawAdmission } = await import("./api/tunnels/admission.ts");
    await withdrawAdmission(this.env, admission);
  }
}
