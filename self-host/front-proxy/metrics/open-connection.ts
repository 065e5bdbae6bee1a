/** What the metrics say about an open connection. */
import type { Socket } from "node:net";

/** HTTP, or the WebSocket of a visitor, or of an agent or another program. */
export type ConnectionKind = "http" | "visitor_websocket" | "program";

type CountedSocket = Pick<Socket, "bytesRead" | "bytesWritten" | "writableLength">;

export class OpenConnection {
  kind: ConnectionKind = "http";
  readonly #socket: CountedSocket;

  constructor(socket: CountedSocket) {
    this.#socket = socket;
  }

  get bytesReceived(): number {
    return this.#socket.bytesRead;
  }

  /** Bytes that wait to be sent do not count, so that the number never decreases. */
  get bytesSent(): number {
    return Math.max(0, this.#socket.bytesWritten - this.#socket.writableLength);
  }
}
