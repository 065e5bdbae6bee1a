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
} from "../../durable-objects/rpc.ts";
import type { ReceiverSettings } from "../../durable-objects/receiver/settings.ts";
import type { AgentAdmission } from "../../durable-objects/tunnel/admission.ts";
import type { Env } from "../env.ts";
import { apiGarbageCollection } from "../../shared/garbage-collection.ts";
import type {
  AdmittedClient,
  AgentRequest,
  AgentVerdict,
  ClientRequest,
  ClientVerdict,
  RedeemedTicket,
  InternalApiBinding,
  PresentedTicket,
} from "../internal-api-binding.ts";

/** Called by each method. */
function load(): Promise<typeof import("./modules.ts")> {
  apiGarbageCollection.countRequest();
  return import("./modules.ts");
}

export class InternalApi extends WorkerEntrypoint<Env> implements InternalApiBinding {
  async findRoutes(hosts: string[]): Promise<Map<string, Route>> {
    const { createDatabase, findRoutes } = await load();
    return findRoutes(createDatabase(this.env), hosts);
  }

  async reportTunnel(report: TunnelReport): Promise<void> {
    const { createDatabase, applyReport } = await load();
    await applyReport(this.env, createDatabase(this.env), report);
  }

  async expireTunnelIfDue(tunnelId: string): Promise<number | null> {
    const { createDatabase, expireIfDue } = await load();
    return expireIfDue(createDatabase(this.env), tunnelId);
  }

  async findTunnelOwner(tunnelId: string): Promise<string | null> {
    const { createDatabase, findTunnelOwner } = await load();
    return findTunnelOwner(createDatabase(this.env), tunnelId);
  }

  async findReceiverIds(ids: string[]): Promise<string[]> {
    const { createDatabase, findReceiverIds } = await load();
    return findReceiverIds(createDatabase(this.env), ids);
  }

  async findReceiverSettings(receiverId: string): Promise<ReceiverSettings | null> {
    const { createDatabase, findReceiverSettings } = await load();
    return findReceiverSettings(createDatabase(this.env), receiverId);
  }

  async getAccessTokenJwks(): Promise<JSONWebKeySet> {
    const { getConfig, getAccessTokenKeys } = await load();
    const { publicJwks } = await getAccessTokenKeys(getConfig(this.env));
    return { keys: publicJwks };
  }

  async relayConnected(relay: RelayDescription): Promise<void> {
    const { createDatabase, saveRelay } = await load();
    await saveRelay(createDatabase(this.env), relay);
  }

  async relayDisconnected(relayId: string, epoch: string): Promise<void> {
    const { createDatabase, markRelayDisconnected } = await load();
    await markRelayDisconnected(createDatabase(this.env), relayId, epoch);
  }

  async countReservedPorts(relayId: string): Promise<{ udp: number; tcp: number }> {
    const { createDatabase, countReservedPorts } = await load();
    return countReservedPorts(createDatabase(this.env), relayId);
  }

  async findLiveWatchers(orgId: string, watchers: WatcherCredential[]): Promise<string[]> {
    const { createDatabase, findLiveWatchers } = await load();
    const ids = watchers.map(({ credentialId }) => credentialId);
    return findLiveWatchers(createDatabase(this.env), orgId, ids);
  }

  async redeemVisitorTicket(shown: PresentedTicket): Promise<RedeemedTicket | null> {
    const { redeemVisitorTicket } = await load();
    return redeemVisitorTicket(this.env, shown);
  }

  async admitAgent(request: AgentRequest): Promise<AgentVerdict> {
    const { admitAgent } = await load();
    return admitAgent(this.env, request);
  }

  async admitClient(request: ClientRequest): Promise<ClientVerdict> {
    const { admitClient } = await load();
    return admitClient(this.env, request);
  }

  async recheckClient(admitted: AdmittedClient): Promise<void> {
    const { recheckClient } = await load();
    await recheckClient(this.env, admitted);
  }

  async recheckAdmission(admission: AgentAdmission): Promise<void> {
    const { recheckAdmission } = await load();
    await recheckAdmission(this.env, admission);
  }

  async withdrawAdmission(admission: AgentAdmission): Promise<void> {
    const { createDatabase, withdrawAdmission } = await load();
    await withdrawAdmission(this.env, createDatabase(this.env), admission);
  }
}
