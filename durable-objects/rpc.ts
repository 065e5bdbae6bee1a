/**
 * The calls between Durable Objects, and from them to the Worker's `Rows` entry point: plain data and methods, so
 * that no object depends on the class of another. PostgreSQL is deliberately not here: objects go to rows through
 * `Rows`, and never in a visitor's path.
 */
import type { JSONWebKeySet } from "jose";
import type { Revocation, TunnelUsage } from "../protocol/relay/link.ts";
import type { ReceiverSettings } from "./receiver/settings.ts";
import type { Counters } from "./tunnel/metrics/outcomes.ts";
import type { TrafficBucket } from "./tunnel/metrics/traffic.ts";

/** Which tunnel answers for a public host name. Versions of a host only ever grow. */
export interface Route {
  /** null: nobody's. */
  tunnelId: string | null;
  version: number;
}

/** What a tunnel knows of itself. `sequence` grows with each report, so a late one changes nothing. */
export interface TunnelReport {
  tunnelId: string;
  sequence: number;
  agentConnected: boolean;
  /** When an agent was last known to be there, in ms since the epoch; null: never. */
  lastSeenAtMs: number | null;
  /** Totals since the tunnel was made. */
  bytesIn: number;
  bytesOut: number;
  requests: number;
  maintenance: boolean;
  /** Of visitors' requests, since the tunnel was made. */
  counters: Counters;
  /** When they came, as far as the rows have yet to hear of it. */
  traffic: TrafficBucket[];
  /** What the rows have yet to hear of. */
  spending: TokenSpending[];
}

/** Whoever serves a tunnel. `sequence` grows with each change of it, so news that comes late changes nothing. */
export interface Attendance {
  tunnelId: string;
  sequence: number;
  /** null: nobody. */
  agent: PresentAgent | null;
}

export interface PresentAgent {
  /** Of one connection. */
  agentId: string;
  remoteIp: string;
  connectedAtMs: number;
}

/** Whether anybody wants to hear what a tunnel captures. Versions of an organization only ever grow. */
export interface Watch {
  version: number;
  isWatched: boolean;
}

/** What a tunnel captured, for watchers. */
export interface CaptureNews {
  tunnelId: string;
  /** Each a captured request in JSON, as watchers get it. */
  messages: string[];
  /** How many more there were that could not be told. */
  missed: number;
}

/** Somebody who watches: by which session. */
export interface WatchingSession {
  sessionId: string;
  userId: string;
}

/** What came of one capability token's agents in a month: totals of this tunnel. */
export interface TokenSpending {
  tokenNonce: string;
  /** `2026-11` */
  month: string;
  /** Of both directions. */
  bytes: number;
  requests: number;
}

/** A relay as it describes itself when it connects. */
export interface RelayDescription {
  relayId: string;
  /** What remote peers and TCP visitors are given. */
  host: string;
  /** What agents open their control connection at. */
  url: string;
  /** The ports that it hands out, both included. */
  firstPort: number;
  lastPort: number;
  /** Of this run of it. */
  epoch: string;
}

/** The Worker's entry point for objects: the only way from live state to rows. */
export interface Rows {
  /** @returns null when no row was ever made for this host. */
  route(host: string): Promise<Route | null>;
  /** Idempotent: the newest report wins. */
  reportTunnel(report: TunnelReport): Promise<void>;
  /**
   * Ends a tunnel whose time is over by the rows' clock, and retires it before this returns.
   * @returns how long it has left; null when there is nothing to wait for.
   */
  expireTunnel(tunnelId: string): Promise<number | null>;
  /** @returns null when there is no such receiver. */
  receiver(receiverId: string): Promise<ReceiverSettings | null>;
  /** Of these, the sessions that are alive and may still watch the organization. */
  liveWatchers(orgId: string, watchers: WatchingSession[]): Promise<string[]>;
  /** The public keys that the service's own access tokens are verified with. */
  tokenKeys(): Promise<JSONWebKeySet>;
  /** Saves where a relay is reached, and that it is connected. */
  relayConnected(relay: RelayDescription): Promise<void>;
  /** That run of the relay is connected no longer. */
  relayGone(relayId: string, epoch: string): Promise<void>;
  /** How many of its ports belong to networks (UDP) and to tunnels (TCP). */
  countReservedPorts(relayId: string): Promise<{ udp: number; tcp: number }>;
}

/** What other objects call on a tunnel. */
export interface TunnelRpc extends Rpc.DurableObjectBranded {
  relayed(usage: TunnelUsage): void;
  attendance(): Attendance | null;
  setWatch(watch: Watch): void;
}

/** What tunnels call on their organization. */
export interface OrganizationRpc extends Rpc.DurableObjectBranded {
  attend(attendance: Attendance): Watch;
  news(news: CaptureNews): Watch;
}

/** What tunnels call on a relay. */
export interface RelayRpc extends Rpc.DurableObjectBranded {
  revoke(revocation: Revocation): void;
  setAllowedCidrs(tunnelId: string, cidrs: string[] | null): void;
}
