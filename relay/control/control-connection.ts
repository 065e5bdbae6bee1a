/** One agent's control connection (protocol/relay/control.ts): its messages, its heartbeat and its close. */
import type { Duplex } from "node:stream";
import type { RawData, WebSocket } from "ws";
import { CLOSE, type CloseName } from "../../protocol/wire/close-codes.ts";
import { formatCloseReason, type CloseSubcode } from "../../protocol/wire/close-reason.ts";
import {
  FLOWS_PER_PORT_MAX,
  RELAY_HEARTBEAT_INTERVAL_MS,
  RELAY_HEARTBEAT_TIMEOUT_MS,
} from "../../protocol/relay/limits.ts";
import { AgentToRelayMessage, type RelayToAgentMessage } from "../../protocol/relay/control.ts";
import type { RelayTicket } from "../../protocol/relay/ticket.ts";
import type { Agent, Associations } from "../associations.ts";
import type { Association } from "../association.ts";
import { parseJson } from "../../shared/json.ts";
import { exceedsJsonBounds } from "../../shared/bounds/json-bounds.ts";
import { getErrorMessage } from "../../shared/error-message.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import { KeysUnavailableError, type TicketVerifier } from "../tickets.ts";

/** An agent that does not read its JSON messages is disconnected beyond this. */
export const CONTROL_BACKLOG_MAX_BYTES = 4 * 1024 * 1024;

export interface ControlOptions {
  associations: Associations;
  tickets: TicketVerifier;
  metrics: Metrics;
  log: Log;
}

/** How long an agent may take to answer a close before its socket is destroyed. */
const CLOSE_MAX_MS = 2_000;

export class ControlConnection implements Agent {
  readonly #socket: WebSocket;
  /** The connection below the WebSocket. */
  readonly #stream: Duplex;
  readonly #options: ControlOptions;
  readonly #heartbeat: NodeJS.Timeout;
  #association: Association | undefined;
  #lastReceivedAtMs = performance.now();
  #isClosed = false;
  /** Tickets are handled one after the other, although their verification is asynchronous. */
  #handling: Promise<void> = Promise.resolve();

  constructor(socket: WebSocket, stream: Duplex, options: ControlOptions) {
    this.#socket = socket;
    this.#stream = stream;
    this.#options = options;
    socket.on("error", () => {});
    socket.on("pong", () => (this.#lastReceivedAtMs = performance.now()));
    socket.on("ping", () => (this.#lastReceivedAtMs = performance.now()));
    socket.on("message", (data, isBinary) => this.#handleMessage(data, isBinary));
    socket.on("close", (code) => this.#handleClose(code));
    this.#heartbeat = setInterval(() => this.#checkHeartbeat(), RELAY_HEARTBEAT_INTERVAL_MS);
  }

  // ── Called by the server ──

  /** @param bearer the ticket; null when the request had none. */
  async start(bearer: string | null): Promise<void> {
    const ticket = await this.#verify(bearer);
    if (ticket === null || this.#isClosed) return;
    const opened = await this.#options.associations.open(ticket, this);
    if ("refused" in opened) return this.#refuse(opened.refused, opened.message);
    if (this.#isClosed) return this.#options.associations.release(opened);
    this.#association = opened;
    const { sub, org, port, kind, generation } = opened.ticket;
    this.#options.log.info("agent connected", {
      ...{ kind, id: sub, orgId: org, port, generation },
      association: opened.id,
    });
    this.send(opened.welcome);
  }

  // ── Called by associations ──

  get bufferedBytes(): number {
    return this.#socket.bufferedAmount;
  }

  send(message: RelayToAgentMessage): void {
    if (this.#isClosed) return;
    if (this.#socket.bufferedAmount > CONTROL_BACKLOG_MAX_BYTES) {
      return this.close("heartbeat_timeout", "the agent does not read its messages");
    }
    this.#socket.send(JSON.stringify(message));
  }

  sendBinary(bytes: Uint8Array): void {
    if (!this.#isClosed) this.#socket.send(bytes, { binary: true });
  }

  close(name: CloseName, message?: string, subcode?: CloseSubcode): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#heartbeat);
    const reason = message === undefined ? name : formatCloseReason(name, message, subcode);
    this.#socket.close(CLOSE[name], reason);
    setTimeout(() => this.#socket.terminate(), CLOSE_MAX_MS).unref();
    const association = this.#association;
    this.#association = undefined;
    if (!association) return;
    this.#logEnd(association, name);
    this.#options.associations.release(association);
  }

  // ── Inside ──

  #handleMessage(data: RawData, isBinary: boolean): void {
    this.#lastReceivedAtMs = performance.now();
    // Before its ticket is verified, an agent is a stranger: nothing of it is read.
    const association = this.#association;
    if (this.#isClosed || !association) return;
    const bytes = data as Buffer;
    if (isBinary) {
      if (!association.handleDatagrams(bytes))
        this.close("protocol_error", "the binary message is not a sequence of datagrams");
      return;
    }
    if (!this.#options.associations.takeMessage(association, bytes.length))
      return this.close("going_away", "too many messages were sent for this port: try again later");
    const message = parseMessage(bytes);
    if (!message)
      return this.close("protocol_error", "the message is not one that an agent may send");
    if (message.type !== "ticket") {
      // The answers leave in one write: `resume` has one for each flow.
      this.#stream.cork();
      association.handleMessage(message);
      return this.#stream.uncork();
    }
    this.#handling = this.#handling.then(() => this.#renew(message.ticket));
  }

  async #renew(text: string): Promise<void> {
    const association = this.#association;
    if (!association) return;
    let ticket;
    try {
      ticket = await this.#options.tickets.verify(text);
    } catch (error) {
      // The association keeps its ticket; the next one may be verified again.
      this.#options.log.warn(
        "could not verify an agent's new ticket, so its current one stays in force",
        {
          id: association.ticket.sub,
          error: getErrorMessage(error),
        },
      );
      return;
    }
    if (!ticket) return this.close("unauthorized", "the ticket is not valid at this relay");
    const refusal = this.#options.associations.renew(association, ticket);
    if (refusal) this.close(refusal.refused, refusal.message);
  }

  async #verify(bearer: string | null): Promise<RelayTicket | null> {
    const { tickets, associations } = this.#options;
    try {
      const ticket = bearer === null ? null : await tickets.verify(bearer, associations.graceMs);
      if (!ticket) this.#refuse("unauthorized", "the ticket is not valid at this relay");
      return ticket;
    } catch (error) {
      const isKnown = error instanceof KeysUnavailableError;
      this.#options.log.warn("could not verify an agent's ticket, so the agent was refused", {
        error: getErrorMessage(error),
      });
      this.#refuse("internal", isKnown ? error.message : "the ticket could not be verified");
      return null;
    }
  }

  #refuse(name: CloseName, message: string): void {
    if (this.#isClosed) return;
    this.#options.metrics.countRefusal(name);
    this.#options.log.info("agent refused", { reason: name, explanation: message });
    this.close(name, message);
  }

  #checkHeartbeat(): void {
    if (performance.now() - this.#lastReceivedAtMs > RELAY_HEARTBEAT_TIMEOUT_MS) {
      return this.close("heartbeat_timeout");
    }
    this.#socket.ping();
  }

  #handleClose(code: number): void {
    clearInterval(this.#heartbeat);
    this.#isClosed = true;
    const association = this.#association;
    if (!association) return;
    this.#association = undefined;
    this.#logEnd(association, code);
    this.#options.associations.release(association);
  }

  #logEnd({ ticket, id }: Association, reason: CloseName | number): void {
    this.#options.log.info("agent disconnected", {
      ...{ kind: ticket.kind, id: ticket.sub, port: ticket.port, association: id, reason },
    });
  }
}

/** A message with more values or levels is not parsed, because that takes long: `resume` with all flows has the most. */
const MESSAGE_VALUES_MAX = 5 * FLOWS_PER_PORT_MAX + 10;
const MESSAGE_LEVELS_MAX = 3;

/** @returns undefined when the bytes are not a message of an agent. */
function parseMessage(bytes: Buffer): AgentToRelayMessage | undefined {
  if (exceedsJsonBounds(bytes, MESSAGE_VALUES_MAX, MESSAGE_LEVELS_MAX)) return undefined;
  return AgentToRelayMessage.safeParse(parseJson(bytes.toString())).data;
}
