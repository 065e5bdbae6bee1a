/** One end of a connection that a test plays. */
import type { Socket } from "node:net";
import { vi } from "vitest";
import { WAIT_OPTIONS } from "./timeouts.ts";

/** One end of a connection, with everything it has received. */
export class ConnectionEnd {
  received = "";
  hasEnded = false;
  isClosed = false;
  readonly socket: Socket;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => (this.received += text));
    socket.on("end", () => (this.hasEnded = true));
    socket.on("close", () => (this.isClosed = true));
    socket.on("error", () => undefined);
  }

  send(text: string): void {
    this.socket.write(text, "latin1");
  }

  async waitFor(text: string): Promise<void> {
    await vi.waitUntil(() => this.received.includes(text), WAIT_OPTIONS);
  }
}
