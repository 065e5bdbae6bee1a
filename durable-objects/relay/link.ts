/**
 * The WebSocket between a relay and its object. The newest socket that has sent a hello is the link; after
 * hibernation it is found by its attachment.
 */
import { CLOSE, type CloseName } from "../../protocol/wire/close-codes.ts";
import {
  RELAY_PING,
  RELAY_PONG,
  type RelayHello,
  type ApiToRelayMessage,
} from "../../protocol/relay/link.ts";
import { HELLO_TIMEOUT_MS } from "../../protocol/limits.ts";
import { closeQuietly, isOpen } from "../websockets.ts";
import { LinkAttachment } from "./link-attachment.ts";

/** A relay sends a heartbeat each `RELAY_HEARTBEAT_INTERVAL_MS`. */
const SILENCE_MAX_MS = 30_000;

interface OpenLink {
  id: string;
  socket: WebSocket;
  hello: RelayHello;
  activeAtMs: number;
}

export class Link {
  readonly #ctx: DurableObjectState;
  readonly #helloTimers = new Map<WebSocket, ReturnType<typeof setTimeout>>();
  #open: OpenLink | undefined;

  constructor(ctx: DurableObjectState) {
    this.#ctx = ctx;
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(RELAY_PING, RELAY_PONG));
    for (const socket of ctx.getWebSockets()) {
      const { id, hello, connectedAtMs } = readAttachment(socket);
      if (!isOpen(socket)) continue;
      // Its hello timer was lost with the earlier instance of the object; a relay sends its hello at once.
      if (!hello) this.close(socket, "protocol_error", "no hello");
      else this.#open = { id, socket, hello, activeAtMs: connectedAtMs };
    }
  }

  /** The hello of the connected relay; undefined when none is connected. */
  get hello(): RelayHello | undefined {
    return this.#open?.hello;
  }

  /** Identifies this connection: the next connection of the same relay has another id. */
  get id(): string | undefined {
    return this.#open?.id;
  }

  /** Accepts a socket, which becomes the link when its hello arrives. */
  accept(socket: WebSocket, nowMs: number): void {
    this.#ctx.acceptWebSocket(socket);
    const id = crypto.randomUUID();
    socket.serializeAttachment({ id, connectedAtMs: nowMs, hello: null } satisfies LinkAttachment);
    const timer = setTimeout(
      () => this.close(socket, "protocol_error", "no hello"),
      HELLO_TIMEOUT_MS,
    );
    this.#helloTimers.set(socket, timer);
  }

  /** A newer socket of the same relay replaces the link: the older one is half-open, or of an earlier run. */
  welcome(socket: WebSocket, hello: RelayHello, nowMs: number): void {
    this.#stopHelloTimer(socket);
    const { id, connectedAtMs } = readAttachment(socket);
    socket.serializeAttachment({ id, connectedAtMs, hello } satisfies LinkAttachment);
    const earlier = this.#open?.socket;
    this.#open = { id, socket, hello, activeAtMs: nowMs };
    if (earlier && earlier !== socket) {
      this.close(earlier, "replaced", "a newer connection of this relay took over");
    }
    this.send({ type: "welcome" });
  }

  isCurrent(socket: WebSocket): boolean {
    return this.#open?.socket === socket;
  }

  recordActivity(nowMs: number): void {
    if (this.#open) this.#open.activeAtMs = nowMs;
  }

  /** Heartbeats count as activity: the platform answers them and records when. */
  isSilent(nowMs: number): boolean {
    const open = this.#open;
    if (!open) return false;
    const pingedAtMs = this.#ctx.getWebSocketAutoResponseTimestamp(open.socket)?.getTime() ?? 0;
    // Later times are from before the clock was set back.
    open.activeAtMs = Math.min(open.activeAtMs, nowMs);
    if (pingedAtMs <= nowMs) open.activeAtMs = Math.max(open.activeAtMs, pingedAtMs);
    return nowMs - open.activeAtMs > SILENCE_MAX_MS;
  }

  /** Does nothing when no relay is connected. */
  send(message: ApiToRelayMessage): void {
    try {
      this.#open?.socket.send(JSON.stringify(message));
    } catch {
      // The socket is closing. Commands are sent again on the next link.
    }
  }

  /** @returns whether the socket was the link until now. */
  close(socket: WebSocket, name: CloseName, explanation: string): boolean {
    closeQuietly(socket, CLOSE[name], `${name}: ${explanation}`);
    return this.remove(socket);
  }

  closeAll(name: CloseName, explanation: string): void {
    for (const socket of this.#ctx.getWebSockets()) this.close(socket, name, explanation);
  }

  /** @returns whether the socket was the link until now. */
  remove(socket: WebSocket): boolean {
    this.#stopHelloTimer(socket);
    if (!this.isCurrent(socket)) return false;
    this.#open = undefined;
    return true;
  }

  #stopHelloTimer(socket: WebSocket): void {
    clearTimeout(this.#helloTimers.get(socket));
    this.#helloTimers.delete(socket);
  }
}

function readAttachment(socket: WebSocket): LinkAttachment {
  return LinkAttachment.parse(socket.deserializeAttachment());
}
