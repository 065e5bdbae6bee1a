/**
 * One relay: the object terminates the link that the relay opens, stores its reports and sends it the commands
 * that it needs. The name of the object is the relay's id.
 */
import { DurableObject } from "cloudflare:workers";
import { RELAY_LINK_MESSAGE_MAX_BYTES } from "../protocol/relay/limits.ts";
import {
  RelayToApiMessage,
  type AssociationUsage,
  type RelayHello,
  type RelayStatus,
  type Revocation,
} from "../protocol/relay/link.ts";
import { parseJson } from "../shared/json.ts";
import type { ObjectBindings } from "./bindings.ts";
import type { RelayRpc } from "./rpc.ts";
import { answerClose, parseClose } from "./websockets.ts";
import { toRefusalResponse, withRetryAfter } from "../access/refusal.ts";
import { Link } from "./relay/link.ts";
import { Networks, type DeviceTotals, type NetworkSummary } from "./relay/networks.ts";
import { PendingRelayCommands, type RelayCommand } from "./relay/pending-commands.ts";
import { TicketGenerations } from "./relay/ticket-generations.ts";
import { UsageDelivery } from "./relay/usage-delivery.ts";

/** How often a link is checked for silence, and undelivered usage counts are delivered again. */
const CHECK_INTERVAL_MS = 30_000;
const RETRY_AFTER_MS = 1_000;
/** The epoch that was last reported to the database as connected. Missing: none. */
const REPORTED_KEY = "reported-epoch";

export class Relay extends DurableObject<ObjectBindings> implements RelayRpc {
  readonly #link: Link;
  readonly #networks: Networks;
  readonly #commands: PendingRelayCommands;
  readonly #generations: TicketGenerations;
  readonly #usage: UsageDelivery;
  /** Reports to the database are sent one after the other, so that they arrive in order. */
  #reporting: Promise<void> = Promise.resolve();
  /** A relay has sent its hello, and its description has not been reported to the database. */
  #hasNewHello = false;
  #draining = false;

  constructor(ctx: DurableObjectState, env: ObjectBindings) {
    super(ctx, env);
    this.#link = new Link(ctx);
    this.#networks = new Networks(ctx.storage.sql);
    this.#commands = new PendingRelayCommands(ctx.storage.sql);
    this.#generations = new TicketGenerations(ctx.storage.kv);
    this.#usage = new UsageDelivery(ctx.storage.sql, async (usage) => {
      await env.TUNNEL.getByName(usage.tunnelId).addRelayedUsage(usage);
    });
  }

  // ── Called by workers ──

  /** A relay's link from the API, which has verified its secret. */
  override fetch(): Response {
    if (this.#draining) return toRefusalResponse(withRetryAfter("unavailable", RETRY_AFTER_MS));
    const { 0: client, 1: server } = new WebSocketPair();
    this.#link.accept(server, Date.now());
    return new Response(null, { status: 101, webSocket: client });
  }

  isConnected(): boolean {
    return this.#link.hello !== undefined && !this.#link.isSilent(Date.now());
  }

  /** The last report of each of these networks that has one. All are offline while the relay is disconnected. */
  findNetworkSummaries(networkIds: string[]): Record<string, NetworkSummary> {
    const linkId = this.isConnected() ? this.#link.id : undefined;
    const found: Record<string, NetworkSummary> = {};
    for (const id of networkIds) {
      const summary = this.#networks.findSummary(id, linkId);
      if (summary) found[id] = summary;
    }
    return found;
  }

  /** The devices of a network that the relay has ever seen. */
  listDeviceTotals(networkId: string): DeviceTotals[] {
    return this.#networks.listDevices(networkId);
  }

  /** For a ticket that is about to be signed. */
  takeTicketGeneration(): number {
    return this.#generations.take(Date.now());
  }

  /** Ends associations, now or when the relay reconnects. Idempotent. */
  revoke(revocation: Revocation): void {
    const { untilGeneration: untilMs } = revocation;
    const untilGeneration = this.#generations.revokeUntil(untilMs, Date.now());
    this.#sendCommand({ ...revocation, untilGeneration });
    if (revocation.reason === "network_deleted" && revocation.id !== undefined) {
      this.#networks.remove(revocation.id);
    }
  }

  /** The address blocks that visitors of a TCP tunnel may connect from; null: any. */
  setAllowedCidrs(tunnelId: string, cidrs: string[] | null): void {
    const asOfMs = this.#generations.take(Date.now());
    this.#sendCommand({ type: "allowed_cidrs", tunnelId, cidrs, asOfMs });
  }

  /** The server stops: the relay is disconnected with a code that asks it to reconnect later. */
  drain(): void {
    this.#draining = true;
    this.#networks.save();
    this.#link.closeAll("going_away", "the server is restarting");
  }

  // ── Called by the relay ──

  override async webSocketMessage(socket: WebSocket, text: string | ArrayBuffer): Promise<void> {
    const message = parseMessage(text);
    if (!message) return this.#rejectLink(socket, "a message that can't be parsed");
    if (message.type === "hello") return this.#welcome(socket, message);
    // A message from an earlier link is older than the reports of the newest.
    if (this.#link.isCurrent(socket)) this.#apply(message);
  }

  override async webSocketClose(
    socket: WebSocket,
    ...close: [code: number, reason: string, wasClean: boolean]
  ): Promise<void> {
    answerClose(socket, parseClose(...close));
    await this.#onLinkClosed(socket);
  }

  override webSocketError(socket: WebSocket): Promise<void> {
    return this.#onLinkClosed(socket);
  }

  // ── Called by the platform ──

  override async alarm(): Promise<void> {
    const now = Date.now();
    this.#commands.removeExpired(now);
    this.ctx.waitUntil(this.#usage.retry(now));
    if (this.#link.isSilent(now)) {
      this.#networks.save();
      this.#link.closeAll("heartbeat_timeout", "no message from the relay");
    }
    await this.#reportConnection();
  }

  // ── Inside ──

  async #welcome(socket: WebSocket, hello: RelayHello): Promise<void> {
    if (hello.relayId !== this.ctx.id.name) return this.#rejectLink(socket, "another relay's id");
    if (hello.firstPort > hello.lastPort)
      return this.#rejectLink(socket, "an empty range of ports");
    const now = Date.now();
    this.#link.welcome(socket, hello, now);
    this.#hasNewHello = true;
    for (const command of this.#commands.list(now)) this.#link.send(command);
    await this.#reportConnection();
  }

  #apply({ networks, tunnels }: RelayStatus): void {
    const { hello, id: linkId } = this.#link;
    if (!hello || linkId === undefined) return;
    this.#link.recordActivity(Date.now());
    for (const network of networks) {
      // The relay's last report of a deleted network arrives after the deletion.
      const isNew = !this.#networks.has(network.networkId);
      if (isNew && this.#commands.isDeleted(network.networkId)) continue;
      this.#networks.apply(network, { linkId, epoch: hello.epoch });
    }
    for (const usage of tunnels) this.ctx.waitUntil(this.#deliverUsage(usage));
  }

  /** The alarm delivers again what could not be delivered. */
  async #deliverUsage(usage: AssociationUsage): Promise<void> {
    await this.#usage.deliver(usage);
    if (this.#usage.hasUndelivered && (await this.ctx.storage.getAlarm()) === null)
      await this.ctx.storage.setAlarm(Date.now() + CHECK_INTERVAL_MS);
  }

  #sendCommand(command: RelayCommand): void {
    this.#commands.add(command, Date.now());
    this.#link.send(command);
  }

  async #rejectLink(socket: WebSocket, explanation: string): Promise<void> {
    if (this.#link.close(socket, "protocol_error", explanation)) await this.#reportConnection();
  }

  async #onLinkClosed(socket: WebSocket): Promise<void> {
    const wasLink = this.#link.remove(socket);
    // A Close that wakes the object finds no link, only the record that a relay was connected.
    if (!wasLink && this.#link.hello) return;
    this.#networks.save();
    await this.#reportConnection();
  }

  /** Reports to the database whether a relay is connected. The alarm retries until the report has arrived. */
  #reportConnection(): Promise<void> {
    this.#reporting = this.#reporting.then(() => this.#reportOnce());
    return this.#reporting;
  }

  async #reportOnce(): Promise<void> {
    const { kv } = this.ctx.storage;
    const { hello } = this.#link;
    const reported = kv.get<string>(REPORTED_KEY);
    let hasFailed = false;
    try {
      if (hello && (this.#hasNewHello || hello.epoch !== reported)) {
        // Before the call: another hello may arrive during it.
        this.#hasNewHello = false;
        const { relayId, host, url, firstPort, lastPort, epoch } = hello;
        await this.env.INTERNAL_API.relayConnected({
          relayId,
          host,
          url,
          firstPort,
          lastPort,
          epoch,
        });
        kv.put(REPORTED_KEY, epoch);
      } else if (!hello && reported !== undefined) {
        await this.env.INTERNAL_API.relayDisconnected(this.ctx.id.name ?? "", reported);
        kv.delete(REPORTED_KEY);
      }
    } catch {
      hasFailed = true;
      // Another hello may have arrived during the call.
      this.#hasNewHello ||= hello !== undefined;
    }
    await this.#sendReservedPorts();
    if (hasFailed) await this.ctx.storage.setAlarm(Date.now() + RETRY_AFTER_MS);
    // Without a link there is nothing to check for silence.
    else if (this.#link.hello || this.#usage.hasUndelivered)
      await this.ctx.storage.setAlarm(Date.now() + CHECK_INTERVAL_MS);
  }

  /** For the relay's metrics, where an operator sees that few ports are left. */
  async #sendReservedPorts(): Promise<void> {
    const { hello } = this.#link;
    if (!hello) return;
    try {
      const { udp, tcp } = await this.env.INTERNAL_API.countReservedPorts(hello.relayId);
      this.#link.send({ type: "ports", reservedUdp: udp, reservedTcp: tcp });
    } catch {
      // The next check asks again.
    }
  }
}

function parseMessage(text: string | ArrayBuffer): RelayHello | RelayStatus | null {
  if (typeof text !== "string" || text.length > RELAY_LINK_MESSAGE_MAX_BYTES) return null;
  return RelayToApiMessage.safeParse(parseJson(text)).data ?? null;
}
