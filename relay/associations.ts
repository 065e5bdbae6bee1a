/** The agents that serve ports of this relay: decides which agent gets a port, and until when. */
import { randomInt } from "node:crypto";
import type { CloseName } from "../protocol/wire/close-codes.ts";
import {
  RELAY_CLOCK_TOLERANCE_MS,
  RELAY_TICKET_GRACE_MS,
  RELAY_TICKET_USABLE_MAX_MS,
} from "../protocol/relay/limits.ts";
import type { Revocation } from "../protocol/relay/link.ts";
import type { RelayTicket } from "../protocol/relay/ticket.ts";
import { SourceSlots } from "../shared/bounds/source-slots.ts";
import { getErrorMessage } from "../shared/error-message.ts";
import { type AgentConnection, type Association, explainBindError } from "./association.ts";
import type { Log } from "./log.ts";
import { MessageBudget } from "./control/message-budget.ts";
import type { Metrics, TcpTotals } from "./metrics.ts";
import { NetworkRecords } from "./network-records.ts";
import { isRevokedBy, type Revocations } from "./revocations.ts";
import type { RelaySettings } from "./settings.ts";
import { AllowlistUpdates } from "./tcp/allowlist-updates.ts";
import { TunnelAssociation } from "./tcp/tunnel-association.ts";
import { LimitsByTunnel } from "./tcp/tunnel-limits.ts";
import { VisitorSlots } from "./tcp/visitor-slots.ts";
import { AgentUdpSocket, type UdpAssociation } from "./udp/agent-socket.ts";
import { FlowTags } from "./udp/flow-tags.ts";
import { FlowIds } from "./udp/flows.ts";
import { NetworkAssociation } from "./udp/network-association.ts";

/** Ports that agents serve at the same time. */
const ASSOCIATIONS_MAX = 10_000;
/** How long an agent whose ticket expired while the API was unreachable may take to bring a new one. */
export const TICKET_RENEWAL_MAX_MS = 30_000;
const ALLOWLIST_UPDATES_MAX = 10_000;
const FLOWS_PER_RELAY_MAX = 65_536;

/** An agent's control connection. */
export interface Agent extends AgentConnection {
  /** Sends a close code with a sentence for a person. */
  close(name: CloseName, message?: string): void;
}

/** Why an agent can't have the port. */
interface AgentRefusal {
  refused: CloseName;
  message: string;
}

/** The agent asks for a ticket for the new port: the API may have signed this one before it knew this relay's range. */
const PORT_CHANGED: AgentRefusal = {
  refused: "server_changed",
  message: "the public port changes, because the relay's range of ports has changed",
};

/** The state of the link to the API. */
export interface LinkState {
  readonly isConnected: boolean;
  /** Milliseconds since the epoch; null if never in this run. */
  readonly connectedAtMs: number | null;
}

interface Entry {
  association: Association;
  agent: Agent;
}

interface AssociationsOptions {
  settings: RelaySettings;
  epoch: string;
  link: LinkState;
  revocations: Revocations;
  metrics: Metrics;
  log: Log;
  /** Called when an association has ended. */
  onEnd(association: Association): void;
  /** Connections of visitors of all TCP tunnels at a time. */
  visitorsMax: number;
  /** Ports that agents serve at the same time. One organization gets at most half. */
  maxAssociations?: number;
}

const U32 = 0x1_0000_0000;

export class Associations {
  readonly agentSocket: AgentUdpSocket;
  readonly connections: VisitorSlots;
  readonly #options: AssociationsOptions;
  readonly #flowIds = new FlowIds<UdpAssociation>(FLOWS_PER_RELAY_MAX, () => randomInt(U32));
  readonly #tags: FlowTags;
  readonly #records = new NetworkRecords();
  readonly #tunnelLimits = new LimitsByTunnel();
  readonly #allowlistUpdates = new AllowlistUpdates({
    maxEntries: ALLOWLIST_UPDATES_MAX,
    maxAgeMs: RELAY_TICKET_USABLE_MAX_MS,
  });
  /** The ports in use, by organization. */
  readonly #slots: SourceSlots;
  /** By kind and port. */
  readonly #byPort = new Map<string, Entry>();
  /** One change of a port at a time. */
  readonly #changes = new Map<string, Promise<unknown>>();
  readonly #byId = new Map<number, Entry>();
  readonly #messages = new MessageBudget(ASSOCIATIONS_MAX);
  /** Tunnels whose agent disconnected while connections were open. */
  readonly #released = new Set<TunnelAssociation>();
  #isClosed = false;
  readonly #endedTcp: TcpTotals = { connections: 0, bytesIn: 0, bytesOut: 0 };
  constructor(options: AssociationsOptions) {
    const { settings, metrics, visitorsMax, maxAssociations = ASSOCIATIONS_MAX } = options;
    this.#options = options;
    this.connections = new VisitorSlots(visitorsMax);
    this.#slots = new SourceSlots(maxAssociations);
    this.agentSocket = new AgentUdpSocket(this.#flowIds, metrics);
    this.#tags = new FlowTags(settings.secret, settings.id);
  }

  get flows(): number {
    return this.#flowIds.size;
  }

  /** Totals of all TCP tunnels since the relay started. */
  get tcpTotals(): TcpTotals {
    const totals = { ...this.#endedTcp };
    for (const association of this.list()) addTcpTotals(totals, association);
    return totals;
  }

  /** All associations, including those without an agent whose connections continue. */
  list(): Association[] {
    return [...[...this.#byPort.values()].map((entry) => entry.association), ...this.#released];
  }

  /** How long a ticket is accepted after its expiry: only while the API that would renew it can't be reached. */
  get graceMs(): number {
    const { isConnected, connectedAtMs } = this.#options.link;
    return connectedAtMs !== null && !isConnected ? RELAY_TICKET_GRACE_MS : 0;
  }

  /** Gives an agent its port. It replaces the agent that serves the port, unless that one's generation is higher. */
  async open(ticket: RelayTicket, agent: Agent): Promise<Association | AgentRefusal> {
    const port = toPortKey(ticket);
    const earlier = this.#changes.get(port);
    const change = Promise.resolve(earlier).then(() => this.#open(ticket, agent));
    this.#changes.set(port, change);
    try {
      return await change;
    } finally {
      if (this.#changes.get(port) === change) this.#changes.delete(port);
    }
  }

  /** @returns null when the ticket is accepted. */
  renew(association: Association, ticket: RelayTicket): AgentRefusal | null {
    const current = association.ticket;
    if (ticket.kind !== current.kind || ticket.sub !== current.sub) {
      return { refused: "protocol_error", message: "the ticket is for another tunnel or network" };
    }
    if (ticket.port !== current.port) return PORT_CHANGED;
    const revocation = this.#options.revocations.find(ticket);
    if (revocation) return { refused: revocation.reason, message: "the ticket was revoked" };
    if (ticket.generation >= current.generation) {
      association.renew(this.#withLatestCidrs(ticket));
      this.#renewReleased(association.ticket);
    }
    return null;
  }

  /** @param bytes of a JSON message of its agent. @returns whether the message may be read. */
  takeMessage({ ticket }: Association, bytes: number): boolean {
    return this.#messages.take(toPortKey(ticket), bytes);
  }

  /** The control connection was lost. */
  release(association: Association): void {
    if (!this.#remove(association)) return;
    association.release();
    if (association instanceof TunnelAssociation && association.getUsage().openConnections > 0) {
      this.#released.add(association);
    } else {
      association.close();
      this.#finish(association);
    }
  }

  revoke(revocation: Revocation): void {
    this.#options.revocations.add(revocation, Date.now());
    for (const { association, agent } of [...this.#byPort.values()]) {
      if (!isRevokedBy(association.ticket, revocation)) continue;
      this.#end(association, agent, revocation.reason, "revoked by the API");
    }
    for (const association of this.#released) {
      if (isRevokedBy(association.ticket, revocation)) association.close();
    }
    const { reason, id } = revocation;
    if (reason === "network_deleted" && id !== undefined) this.#records.delete(id);
  }

  /** @param asOfMs when the API sent it, in milliseconds since the epoch. */
  setAllowedCidrs(tunnelId: string, cidrs: string[] | null, asOfMs: number): void {
    if (!this.#allowlistUpdates.add(tunnelId, cidrs, asOfMs)) return;
    for (const association of this.list()) {
      if (association instanceof TunnelAssociation && association.ticket.sub === tunnelId) {
        association.setAllowedCidrs(cidrs);
      }
    }
  }

  findTunnel(id: number): TunnelAssociation | undefined {
    const association = this.#byId.get(id)?.association;
    return association instanceof TunnelAssociation ? association : undefined;
  }

  /** Called every second. */
  sweep(nowMs: number): void {
    for (const { association, agent } of [...this.#byPort.values()]) {
      if (nowMs > this.#getExpiryMs(association.ticket)) {
        this.#end(association, agent, "unauthorized", "the ticket has expired");
      } else {
        association.sweep(nowMs);
      }
    }
    for (const association of this.#released) {
      if (nowMs > this.#getExpiryMs(association.ticket)) association.close();
      if (association.getUsage().openConnections > 0) continue;
      this.#released.delete(association);
      association.close();
      this.#finish(association);
    }
    this.#tunnelLimits.sweep(nowMs);
  }

  /** Ends everything: the relay stops. */
  closeAll(): void {
    this.#isClosed = true;
    for (const { association, agent } of [...this.#byPort.values()]) {
      this.#end(association, agent, "going_away", "the relay is stopping");
    }
    for (const association of this.#released) {
      association.close();
      this.#finish(association);
    }
    this.#released.clear();
  }

  // ── Inside ──

  async #open(ticket: RelayTicket, agent: Agent): Promise<Association | AgentRefusal> {
    const { settings, revocations, log } = this.#options;
    const key = toPortKey(ticket);
    if (this.#isClosed) return { refused: "going_away", message: "the relay is stopping" };
    if (ticket.port < settings.firstPort || ticket.port > settings.lastPort) return PORT_CHANGED;
    const revocation = revocations.find(ticket);
    if (revocation) return { refused: revocation.reason, message: "the ticket was revoked" };
    const current = this.#byPort.get(key);
    if (current && current.association.ticket.generation > ticket.generation) {
      return { refused: "replaced", message: "a newer agent serves this port" };
    }
    if (current) {
      this.#end(current.association, current.agent, "replaced", "a newer agent serves this port");
      this.#slots.add(ticket.org);
    } else if (!this.#slots.take(ticket.org)) {
      return {
        refused: "going_away",
        message: "the relay is at capacity: try again later",
      };
    }
    const association = this.#create(this.#withLatestCidrs(ticket), agent);
    // Registered before the port is bound: a revocation may arrive meanwhile.
    const entry = { association, agent };
    this.#byPort.set(key, entry);
    this.#byId.set(association.id, entry);
    try {
      await association.listen();
    } catch (error) {
      this.#remove(association);
      association.close();
      log.error("could not listen on a port, so its agent was refused: free the port", {
        ...{ kind: ticket.kind, port: ticket.port, error: getErrorMessage(error) },
      });
      return { refused: "port_unusable", message: explainBindError(error, ticket.port) };
    }
    if (this.#byPort.get(key) !== entry) {
      // The agent has already got its close code.
      association.close();
      return {
        refused: "connection_ended",
        message: "the connection was ended while the port was being bound",
      };
    }
    this.#renewReleased(association.ticket);
    return association;
  }

  /** Connections that the agent has from before it lost its control connection continue while its tickets are renewed. */
  #renewReleased(ticket: RelayTicket): void {
    for (const association of this.#released) {
      const { sub, port, nonce } = association.ticket;
      if (ticket.sub === sub && ticket.port === port && ticket.nonce === nonce)
        association.renew(ticket);
    }
  }

  #create(ticket: RelayTicket, agent: Agent): Association {
    const { settings, epoch, metrics, log } = this.#options;
    const shared = {
      id: this.#generateId(),
      epoch,
      bind: settings.bind,
      host: settings.host,
      connection: agent,
    };
    if (ticket.kind === "tunnel") {
      const limits = this.#tunnelLimits.getOrCreate(ticket.sub, ticket.mbps);
      const { connections } = this;
      return new TunnelAssociation({ ...shared, ticket, limits, connections, log });
    }
    return new NetworkAssociation({
      ...shared,
      ticket,
      udpPort: settings.agentPort,
      agentSocket: this.agentSocket,
      flowIds: this.#flowIds,
      tags: this.#tags,
      metrics,
      record: this.#records.getOrCreate(ticket.sub),
    });
  }

  #finish(association: Association): void {
    addTcpTotals(this.#endedTcp, association);
    this.#options.onEnd(association);
  }

  #withLatestCidrs(ticket: RelayTicket): RelayTicket {
    if (ticket.kind === "network") return ticket;
    return { ...ticket, cidrs: this.#allowlistUpdates.getEffectiveCidrs(ticket) };
  }

  /** Random, so that it does not name another agent after a restart. */
  #generateId(): number {
    for (;;) {
      const id = randomInt(1, U32);
      if (!this.#byId.has(id)) return id;
    }
  }

  #end(association: Association, agent: Agent, name: CloseName, message: string): void {
    if (!this.#remove(association)) return;
    association.close();
    this.#finish(association);
    agent.close(name, message);
  }

  /** @returns false when the association no longer has its port. */
  #remove(association: Association): boolean {
    const key = toPortKey(association.ticket);
    if (this.#byPort.get(key)?.association !== association) return false;
    this.#byPort.delete(key);
    this.#slots.free(association.ticket.org);
    this.#byId.delete(association.id);
    return true;
  }

  /** Milliseconds since the epoch. */
  #getExpiryMs({ exp }: RelayTicket): number {
    const { isConnected, connectedAtMs } = this.#options.link;
    const expiresAtMs = exp * 1_000 + RELAY_CLOCK_TOLERANCE_MS;
    if (connectedAtMs === null) return expiresAtMs;
    if (!isConnected) return expiresAtMs + RELAY_TICKET_GRACE_MS;
    // The API can be reached again, so the agent can request a new ticket.
    return Math.max(
      expiresAtMs,
      Math.min(connectedAtMs + TICKET_RENEWAL_MAX_MS, expiresAtMs + RELAY_TICKET_GRACE_MS),
    );
  }
}

function addTcpTotals(totals: TcpTotals, association: Association): void {
  const usage = association.getUsage?.();
  if (!usage) return;
  totals.connections += usage.connections;
  totals.bytesIn += usage.bytesIn;
  totals.bytesOut += usage.bytesOut;
}

function toPortKey({ kind, port }: RelayTicket): string {
  return `${kind}:${port}`;
}
