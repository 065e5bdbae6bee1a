/**
 * The control connection to a relay (docs/protocols/relay-protocol.md): opened with a ticket from the API, which is
 * renewed before it expires. It reconnects whenever it is lost; only a rejection that no retry can change ends it.
 */
import { EventEmitter } from "node:events";
import type { RawData, WebSocket } from "ws";
import { z } from "zod";
import { CLOSE, findCloseName, shouldReconnect } from "../../protocol/wire/close-codes.ts";
import { parseCloseReason } from "../../protocol/wire/close-reason.ts";
import {
  RELAY_HEARTBEAT_INTERVAL_MS,
  RELAY_HEARTBEAT_TIMEOUT_MS,
  RELAY_LINK_MESSAGE_MAX_BYTES,
} from "../../protocol/relay/limits.ts";
import {
  RelayToAgentMessage,
  type AgentToRelayMessage,
  type NetworkWelcome,
  type TunnelWelcome,
} from "../../protocol/relay/control.ts";
import { TicketTimes } from "../../protocol/relay/ticket.ts";
import { RELAY_SUBPROTOCOL } from "../../protocol/relay/datagrams.ts";
import { CONTROL_PATH, toRelayUrl } from "../../protocol/relay/paths.ts";
import type { RelayAccess } from "../../protocol/schemas/networks.ts";
import { parseJson } from "../../shared/json.ts";
import { readUnverifiedPart } from "../../shared/jwt.ts";
import { SECOND_MS } from "../../shared/time.ts";
import type { TrustedAuthorities } from "../outgoing/trusted-authorities.ts";
import { describeClose, explainError } from "../error-message.ts";
import { ElapsedTime } from "../tunnel/elapsed-time.ts";
import { openWebSocket } from "../websocket.ts";
import { getBackOffMs, getRetryDelayMs } from "../back-off.ts";
import { RejectionError } from "../rejection-error.ts";

/** The agent asks for the next ticket when this share of the current one's lifetime, from 0 to 1, has passed. */
const TICKET_RENEWAL_LIFETIME_SHARE = 0.5;

/** While the relay can't be reached, the agent asks the API at most this often whether the relay has another address. */
const ADDRESS_CHECK_INTERVAL_MS = 10_000;

/** A ticket that expires sooner is not used for another connection. */
const TICKET_MARGIN_MS = 15_000;

/**
 * After these closes, and after a loss without a close of the relay (1006 and others), the ticket stays valid for the next
 * connection. Any other close may be due to a revocation, which invalidates the tickets that were signed before it.
 */
const CLOSES_THAT_KEEP_TICKET: ReadonlySet<number> = new Set([
  CLOSE.going_away,
  CLOSE.heartbeat_timeout,
  CLOSE.internal,
  CLOSE.port_unusable,
]);

interface RelayControlOptions {
  authorities: TrustedAuthorities | undefined;
  /**
   * Asks the API for a ticket. A `RejectionError` is permanent; any other error is retried.
   * @param unusablePort the relay can't listen on it, and the API may assign another one.
   */
  getAccess(signal: AbortSignal, unusablePort?: number): Promise<RelayAccess>;
}

interface ReceivedAccess {
  value: RelayAccess;
  /** How long its ticket is valid from `sinceReceived` on. */
  lifetimeMs: number;
  sinceReceived: ElapsedTime;
}

export type RelayUpdate = Exclude<RelayToAgentMessage, { type: "welcome" }>;

interface RelayControlEvents {
  /** The relay accepted this agent: the first time, and after each reconnect. */
  welcome: [welcome: NetworkWelcome | TunnelWelcome, access: RelayAccess];
  message: [message: RelayUpdate];
  /** Datagrams. The listener owns the buffer. */
  binary: [data: Buffer];
  /** The connection was lost after a welcome, with the code of its close frame; the agent reconnects. */
  disconnected: [reason: string, code: number];
  /** A connection could not be opened; another attempt follows. The code is that of the relay's close frame. */
  retrying: [reason: string, inMs: number, code: number | undefined];
  /** The relay or the API rejected the agent permanently. */
  rejected: [rejection: RejectionError];
}

export class RelayControlConnection extends EventEmitter<RelayControlEvents> {
  readonly #options: RelayControlOptions;
  readonly #abort = new AbortController();
  #access: ReceivedAccess | undefined;
  /** undefined: the API was not asked for a ticket yet. */
  #sinceAsked: ElapsedTime | undefined;
  /** Visitors may know this port, so it is not replaced. */
  #servedPort: number | undefined;
  /** The API is told that the relay can't listen on this port. */
  #unusablePort: number | undefined;
  /** Why the API has not returned a ticket, while the current one is tried again. */
  #apiProblem = "";
  /** The last attempt to connect failed before the relay's welcome. */
  #isUnreachable = false;
  #socket: WebSocket | undefined;
  #isWelcomed = false;
  #failures = 0;
  /** How many tickets in a row the relay refused. */
  #refusedTickets = 0;
  #retry: NodeJS.Timeout | undefined;
  #renewal: NodeJS.Timeout | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  readonly #sinceReceived = new ElapsedTime();

  constructor(options: RelayControlOptions) {
    super();
    this.#options = options;
  }

  start(): void {
    void this.#connect();
  }

  close(): void {
    if (this.#abort.signal.aborted) return;
    this.#abort.abort();
    this.#clearTimers();
    clearTimeout(this.#retry);
    this.#socket?.close(1000, "the agent was stopped");
  }

  get isConnected(): boolean {
    return this.#isWelcomed;
  }

  /** Bytes that were passed to `sendBinary` and are not yet in the system's socket buffer. */
  get bufferedBytes(): number {
    return this.#socket?.bufferedAmount ?? 0;
  }

  /** A message that is sent without a connection is lost. */
  send(message: AgentToRelayMessage): void {
    if (this.#isWelcomed) this.#socket?.send(JSON.stringify(message));
  }

  sendBinary(data: Uint8Array): void {
    if (this.#isWelcomed) this.#socket?.send(data);
  }

  // ── Connecting ──

  async #connect(): Promise<void> {
    let access: RelayAccess;
    try {
      access = await this.#getUsableAccess();
    } catch (error) {
      return this.#handleFailure(error);
    }
    if (!this.#abort.signal.aborted) this.#open(access);
  }

  /** Uses the current ticket while it lasts, so that the relay can be reached while the API can't. */
  async #getUsableAccess(): Promise<RelayAccess> {
    const current = this.#access;
    if (!current || current.lifetimeMs - current.sinceReceived.ms <= TICKET_MARGIN_MS)
      return this.#fetchAccess();
    const askedAgoMs = this.#sinceAsked?.ms ?? Infinity;
    if (!this.#isUnreachable || askedAgoMs < ADDRESS_CHECK_INTERVAL_MS) return current.value;
    try {
      return await this.#fetchAccess();
    } catch (error) {
      if (error instanceof RejectionError) throw error;
      this.#apiProblem = `; the server does not say where the relay is now: ${explainError(error)}`;
      return current.value;
    }
  }

  async #fetchAccess(): Promise<RelayAccess> {
    this.#sinceAsked = new ElapsedTime();
    const value = await this.#options.getAccess(this.#abort.signal, this.#unusablePort);
    this.#unusablePort = undefined;
    const lifetimeMs = readLifetimeMs(value.ticket);
    this.#access = { value, lifetimeMs, sinceReceived: new ElapsedTime() };
    this.#apiProblem = "";
    return value;
  }

  #open(access: RelayAccess): void {
    let socket: WebSocket;
    try {
      socket = openSocket(access, this.#options.authorities);
    } catch (error) {
      // The API returned a relay URL that can't be used.
      this.#isUnreachable = true;
      return this.#handleFailure(error);
    }
    let problem = "";
    this.#socket = socket;
    socket.on("open", () => this.#handleOpen());
    socket.on("message", (data, isBinary) => this.#receive(socket, access, data, isBinary));
    socket.on("ping", () => this.#sinceReceived.restart());
    socket.on("pong", () => this.#sinceReceived.restart());
    socket.on("error", (error) => (problem = describeRelayError(error)));
    socket.on("close", (code, reason) => this.#handleClose(code, reason.toString() || problem));
  }

  #handleOpen(): void {
    this.#sinceReceived.restart();
    this.#heartbeat = setInterval(() => {
      if (this.#sinceReceived.ms > RELAY_HEARTBEAT_TIMEOUT_MS) this.#socket?.terminate();
      else this.#socket?.ping();
    }, RELAY_HEARTBEAT_INTERVAL_MS);
  }

  // ── Connected ──

  #receive(socket: WebSocket, access: RelayAccess, data: RawData, isBinary: boolean): void {
    this.#sinceReceived.restart();
    if (isBinary) {
      if (this.#isWelcomed) this.emit("binary", data as Buffer);
      return;
    }
    const message = parseMessage(data as Buffer);
    if (message === "unknown_type") return;
    if (!message || (message.type === "welcome") === this.#isWelcomed)
      return socket.close(
        CLOSE.protocol_error,
        "protocol_error: the relay sent an unexpected message",
      );
    if (message.type !== "welcome") return void this.emit("message", message);
    this.#isWelcomed = true;
    this.#isUnreachable = false;
    this.#servedPort = access.port;
    this.#failures = 0;
    this.#refusedTickets = 0;
    this.#renewLater();
    this.emit("welcome", message, access);
  }

  #renewLater(): void {
    const { lifetimeMs, sinceReceived } = this.#access!;
    const inMs = lifetimeMs * TICKET_RENEWAL_LIFETIME_SHARE - sinceReceived.ms;
    this.#renewal = setTimeout(() => void this.#renew(0), Math.max(inMs, 0));
  }

  /** While the API can't be reached, the relay serves an expired ticket for `RELAY_TICKET_GRACE_MS`. */
  async #renew(failures: number): Promise<void> {
    const socket = this.#socket;
    try {
      const { ticket } = await this.#fetchAccess();
      if (socket !== this.#socket || !this.#isWelcomed) return;
      this.send({ type: "ticket", ticket });
      this.#renewLater();
    } catch (error) {
      if (this.#abort.signal.aborted) return;
      if (error instanceof RejectionError) return this.#reject(error);
      if (socket !== this.#socket || !this.#isWelcomed) return;
      this.#renewal = setTimeout(() => void this.#renew(failures + 1), getBackOffMs(failures));
    }
  }

  // ── Ends ──

  #handleClose(code: number, reason: string): void {
    this.#clearTimers();
    const wasWelcomed = this.#isWelcomed;
    this.#isUnreachable = !wasWelcomed;
    this.#isWelcomed = false;
    this.#socket = undefined;
    if (this.#abort.signal.aborted) return;
    const name = findCloseName(code) ?? String(code);
    const { message, subcode } = parseCloseReason(code, reason);
    const explanation = message || describeClose(code);
    const access = this.#access?.value;
    const isReplaceable = access?.port_replaceable === true && access.port !== this.#servedPort;
    const isReplaced = code === CLOSE.port_unusable && isReplaceable;
    if (isReplaced) this.#unusablePort = access.port;
    if (isReplaced || (findCloseName(code) !== null && !CLOSES_THAT_KEEP_TICKET.has(code)))
      this.#access = undefined;
    if (code === CLOSE.unauthorized && this.#refusedTickets === 0) {
      // The ticket may have expired in transit, or been revoked: the API decides whether to issue another one.
      this.#refusedTickets += 1;
    } else if (!shouldReconnect(code)) {
      return this.#reject(new RejectionError(name, explanation, { subcode }));
    }
    if (wasWelcomed) this.emit("disconnected", explanation, code);
    const inMs = getRetryDelayMs(code, this.#failures);
    this.#retryLater(`${explanation}${this.#apiProblem}`, inMs, code);
  }

  #handleFailure(error: unknown): void {
    if (this.#abort.signal.aborted) return;
    if (error instanceof RejectionError) return this.#reject(error);
    this.#retryLater(explainError(error), getBackOffMs(this.#failures));
  }

  #retryLater(reason: string, inMs: number, code?: number): void {
    this.#failures += 1;
    if (this.#failures > 1) this.emit("retrying", reason, inMs, code);
    this.#retry = setTimeout(() => void this.#connect(), inMs);
  }

  #reject(rejection: RejectionError): void {
    if (this.#abort.signal.aborted) return;
    this.close();
    this.emit("rejected", rejection);
  }

  #clearTimers(): void {
    clearInterval(this.#heartbeat);
    clearTimeout(this.#renewal);
  }
}

function openSocket(
  { relay, ticket }: RelayAccess,
  authorities: TrustedAuthorities | undefined,
): WebSocket {
  const url = toRelayUrl(relay.url, CONTROL_PATH);
  return openWebSocket(url, RELAY_SUBPROTOCOL, ticket, {
    maxPayload: RELAY_LINK_MESSAGE_MAX_BYTES,
    authorities,
  });
}

/** The agent's user has not chosen the relay's address, and can't check it. */
function describeRelayError(error: Error): string {
  const advice = "ask the server's operator to check the relay's address (RELAY_HOST, RELAY_URL)";
  return explainError(error).replace("check the address", advice);
}

/** Both times are of the server's clock: that of this machine may differ. @throws if it can't be read. */
function readLifetimeMs(ticket: string): number {
  const { iat, exp } = TicketTimes.parse(readUnverifiedPart(ticket, 1));
  return (exp - iat) * SECOND_MS;
}

const KNOWN_TYPES: ReadonlySet<string> = new Set<RelayToAgentMessage["type"]>([
  "welcome",
  "flow",
  "flow_closed",
  "open",
]);
const AnyMessage = z.object({ type: z.string() });

/** @returns "unknown_type" for a message that only a newer relay sends; undefined for one that no relay sends. */
function parseMessage(data: Buffer): RelayToAgentMessage | "unknown_type" | undefined {
  const json = parseJson(data.toString());
  const { type } = AnyMessage.safeParse(json).data ?? {};
  if (type !== undefined && !KNOWN_TYPES.has(type)) return "unknown_type";
  return RelayToAgentMessage.safeParse(json).data;
}
