/**
 * The calls between Durable Objects, and from them to the Worker's `InternalApi` entry point: plain data and methods, so
 * that no object depends on the class of another. PostgreSQL is deliberately not here: objects reach it through
 * `InternalApi`, and never in a visitor's path.
 */
import type { JSONWebKeySet } from "jose";
import type { Revocation, AssociationUsage } from "../protocol/relay/link.ts";
import type { ReceiverSettings } from "./receiver/settings.ts";
import type { Counters } from "./tunnel/metrics/outcomes.ts";
import type { TrafficBucket } from "./tunnel/metrics/traffic.ts";

/** The tunnel that serves a public host name. The version of a host only ever increases. */
export interface Route {
  /** null: no tunnel. */
  tunnelId: string | null;
  version: number;
  /** How many objects the tunnel's visitors are spread over. Absent: one. */
  shards?: number;
}

/** A tunnel's state and counters. `sequence` increases with each report, so a late one changes nothing. */
export interface TunnelReport {
  tunnelId: string;
  sequence: number;
  agentConnected: boolean;
  /** When an agent was last known to be connected, in ms since the epoch; null: never. */
  lastSeenAtMs: number | null;
  /** Totals since the tunnel was created. */
  bytesIn: number;
  bytesOut: number;
  requests: number;
  maintenance: boolean;
  /** Counters of visitors' requests since the tunnel was created. */
  counters: Counters;
  /** The time series, as far as it has not been reported yet. */
  traffic: TrafficBucket[];
  /** Spending that has not been reported yet. */
  spending: TokenUsage[];
}

/** Which agents serve a tunnel. `sequence` increases with each change, so a report that arrives late changes nothing. */
export interface Presence {
  tunnelId: string;
  sequence: number;
  /** More than one when the agents form a pool. */
  agents: ServingAgent[];
}

export interface ServingAgent {
  /** Identifies one connection. */
  agentId: string;
  remoteIp: string;
  connectedAtMs: number;
}

/** An agent that serves a tunnel, as it is now. */
export interface AgentState extends ServingAgent {
  /** Identifies an agent in a pool, at all objects of the tunnel. null: it serves alone. */
  instance: string | null;
  /** Requests and WebSockets. */
  inFlight: number;
  /** Whether its local server accepts connections, as far as the agent has reported. */
  isHealthy: boolean;
  /** Its local server, for people. null: the agent has not described it. */
  local: string | null;
}

/** Whether a watcher wants the requests that a tunnel captures. The version of an organization only ever increases. */
export interface WatchStatus {
  version: number;
  isWatched: boolean;
}

/** Requests that a tunnel has captured, for watchers. */
export interface CaptureBatch {
  tunnelId: string;
  /** Each is a captured request in JSON, as watchers receive it. */
  messages: string[];
  /** How many more requests were captured that could not be delivered. */
  missed: number;
}

/** The credential with which a watcher was authorized. */
export interface WatcherCredential {
  /** The id of a session, or of a capability token. */
  credentialId: string;
}

/** The total traffic of one capability token's agents for this tunnel in a month. */
export interface TokenUsage {
  tokenNonce: string;
  /** `2026-11` */
  month: string;
  /** Both directions together. */
  bytes: number;
  requests: number;
}

/** How a relay describes itself when it connects. */
export interface RelayDescription {
  relayId: string;
  /** The host that remote peers and TCP visitors connect to. */
  host: string;
  /** Where agents open their control connection. */
  url: string;
  /** The ports that it assigns, both included. */
  firstPort: number;
  lastPort: number;
  /** Identifies this run of the relay. */
  epoch: string;
}

/** The Worker's entry point for objects: the only way from live state to the database. */
export interface InternalApi {
  /** @returns the routes of those hosts that have a row. */
  findRoutes(hosts: string[]): Promise<Map<string, Route>>;
  /** Idempotent: the newest report wins. */
  reportTunnel(report: TunnelReport): Promise<void>;
  /**
   * Expires a tunnel whose end has passed by the database's clock, and retires it before this returns.
   * @returns the milliseconds until it expires; null when it will not expire.
   */
  expireTunnelIfDue(tunnelId: string): Promise<number | null>;
  /** @returns the organization that owns a tunnel; null when there is no such tunnel. */
  findTunnelOwner(tunnelId: string): Promise<string | null>;
  /** @returns those of the ids that webhook receivers have. */
  findReceiverIds(ids: string[]): Promise<string[]>;
  /** @returns null when there is no such receiver. */
  findReceiverSettings(receiverId: string): Promise<ReceiverSettings | null>;
  /** @returns the ids of the sessions and tokens that may still watch the organization. */
  findLiveWatchers(orgId: string, watchers: WatcherCredential[]): Promise<string[]>;
  /** The public keys that the service's own access tokens are verified with. */
  getAccessTokenJwks(): Promise<JSONWebKeySet>;
  /** Saves the addresses of a relay, and that it is connected. */
  relayConnected(relay: RelayDescription): Promise<void>;
  /** This run of the relay is no longer connected. */
  relayDisconnected(relayId: string, epoch: string): Promise<void>;
  /** How many of its ports belong to networks (UDP) and to tunnels (TCP). */
  countReservedPorts(relayId: string): Promise<{ udp: number; tcp: number }>;
}

/** Called on a tunnel by other objects. */
export interface TunnelRpc extends Rpc.DurableObjectBranded {
  addRelayedUsage(usage: AssociationUsage): void;
  getPresence(): Presence | null;
  setWatchStatus(status: WatchStatus): Promise<void>;
}

/** Called by tunnels on their organization. */
export interface OrganizationRpc extends Rpc.DurableObjectBranded {
  reportPresence(presence: Presence): WatchStatus;
  deliverCaptures(batch: CaptureBatch): WatchStatus;
}

/** Called by tunnels on a relay. */
export interface RelayRpc extends Rpc.DurableObjectBranded {
  revoke(revocation: Revocation): void;
  setAllowedCidrs(tunnelId: string, cidrs: string[] | null): void;
}
