/** Connections to what answers the requests: workerd, and the relay. */
import type { Socket } from "node:net";
import { readAfterFailedWrites } from "../../sockets/early-response.ts";
import { connectSocket, setReceiver } from "../../sockets/socket-reader.ts";
import type { Destination } from "./metrics/front-proxy-metrics.ts";
import { isForRelay } from "./relay/agent-connection.ts";
import type { RequestHead } from "./http1/request-head.ts";

export interface Upstreams {
  /** The host names of the API; all others lead to tunnels. */
  apiHosts: ReadonlySet<string>;
  /** The paths of the sockets. No agent is passed on to the relay without one. */
  upstreamPaths: Record<Exclude<Destination, "relay">, string> & { relay?: string };
}

export function findDestination(
  head: RequestHead,
  { apiHosts, upstreamPaths }: Upstreams,
): Destination {
  if (!apiHosts.has(head.host)) return "tunnel";
  return upstreamPaths.relay !== undefined && isForRelay(head) ? "relay" : "api";
}

interface UpstreamEvents {
  /** Called with the bytes that arrive. @returns whether more may be read; if not, `resume` goes on. */
  onReceive: (bytes: Uint8Array) => boolean;
  /** Called when the forwarded bytes were sent, or no longer need to be. */
  onWritten: () => void;
  /** The other end has closed the connection, or it failed. It is opened again for the next bytes. */
  onEnd: () => void;
}

/** The connection for the requests of one visitor: opened when there is something to forward, and kept for the next request. */
export class UpstreamConnection {
  readonly #upstreams: Upstreams;
  readonly #events: UpstreamEvents;
  #destination: Destination = "tunnel";
  #socket: Socket | undefined;
  /** The previous one, while the other end still reads from it. */
  #released: Socket | undefined;

  constructor(upstreams: Upstreams, events: UpstreamEvents) {
    this.#upstreams = upstreams;
    this.#events = events;
  }

  /** Where it leads, or would. */
  get destination(): Destination {
    return this.#destination;
  }

  get isOpen(): boolean {
    return this.#socket !== undefined;
  }

  /** Whether the other end has taken everything that was forwarded. */
  get isFlushed(): boolean {
    return !this.#socket?.writableLength && !this.#released?.writableLength;
  }

  /** Requests from now on go there. */
  select(destination: Destination): void {
    if (destination !== this.#destination) this.close();
    this.#destination = destination;
  }

  forward(pieces: readonly Uint8Array[]): void {
    const socket = (this.#socket ??= this.#connect());
    socket.cork();
    for (const piece of pieces) socket.write(piece, this.#events.onWritten);
    socket.uncork();
  }

  /** Reads on. The bytes that were passed to `onReceive` are no longer needed. */
  resume(): void {
    this.#socket?.resume();
    this.#released?.resume();
  }

  /** Nothing more is forwarded on it, and the rest of its response still arrives. */
  end(): void {
    this.#socket?.end();
  }

  /** Another one is opened for the next request. The rest of the last one still arrives at the other end. */
  release(): void {
    this.#released?.destroy();
    this.#released = this.#socket;
    this.#socket = undefined;
  }

  /** Ends it completely, so that nothing more of it arrives. */
  close(): void {
    this.#socket?.destroy();
    this.#released?.destroy();
    this.#socket = undefined;
    this.#released = undefined;
  }

  /** Gives it away, while it is open. */
  detach(): Socket {
    const socket = this.#socket!;
    this.#socket = undefined;
    return socket;
  }

  #connect(): Socket {
    const { upstreamPaths } = this.#upstreams;
    const socket = connectSocket({ path: upstreamPaths[this.#destination]!, allowHalfOpen: true });
    // The relay ends a connection whose visitor is gone, even while the agent is still sending.
    if (this.#destination !== "relay") readAfterFailedWrites(socket, Infinity);
    const handleEnd = (): void => {
      const isReleased = socket === this.#released;
      if (!isReleased && socket !== this.#socket) return;
      if (isReleased) this.#released = undefined;
      else this.#socket = undefined;
      socket.destroy();
      if (isReleased) this.#events.onWritten();
      else this.#events.onEnd();
    };
    socket.on("error", () => undefined);
    socket.once("end", handleEnd).once("close", handleEnd);
    setReceiver(socket, (bytes) =>
      socket === this.#socket ? this.#events.onReceive(bytes) : socket === this.#released,
    );
    return socket.resume();
  }
}
