/** A relay's link to a complete server, with the test in the role of the relay: it sends reports and receives messages. */
import { expect, vi } from "vitest";
import { WebSocket } from "ws";
import {
  RELAY_PING,
  RELAY_PONG,
  ApiToRelayMessage,
  type RelayHello,
  type RelayStatus,
  type Revocation,
} from "../../../protocol/relay/link.ts";
import { RELAY_HEARTBEAT_INTERVAL_MS } from "../../../protocol/relay/limits.ts";
import { WAIT_OPTIONS } from "../timeouts.ts";
import type { TestServer } from "./server.ts";
import { RELAY_SECRET } from "./server-kinds.ts";

export class RelayLink implements Disposable {
  readonly hello: RelayHello;
  readonly received: ApiToRelayMessage[] = [];
  /** The last message about reserved ports. */
  reservedPorts: ApiToRelayMessage | undefined;
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly #socket: WebSocket;
  readonly #heartbeat: ReturnType<typeof setInterval>;

  private constructor(socket: WebSocket, hello: RelayHello) {
    this.hello = hello;
    this.#socket = socket;
    this.#heartbeat = setInterval(() => socket.send(RELAY_PING), RELAY_HEARTBEAT_INTERVAL_MS);
    this.closed = new Promise((resolve) => {
      socket.on("close", (code, reason) => resolve({ code, reason: reason.toString() }));
    });
    void this.closed.then(() => clearInterval(this.#heartbeat));
  }

  /** @throws if the server does not accept the WebSocket, for example `Unexpected server response: 401`. */
  static async connect(
    server: Pick<TestServer, "port">,
    change: Partial<RelayHello> & { secret?: string } = {},
  ): Promise<RelayLink> {
    const { secret = RELAY_SECRET, ...described } = change;
    const hello: RelayHello = {
      type: "hello",
      relayId: "main",
      version: "test",
      host: "relay.example.com",
      url: "ws://relay.example.com:40000",
      firstPort: 40_001,
      lastPort: 40_010,
      epoch: crypto.randomUUID(),
      ...described,
    };
    const address = `ws://127.0.0.1:${server.port}/relays/connect?relay_id=${hello.relayId}`;
    const socket = new WebSocket(address, {
      headers: { authorization: `Bearer ${secret}` },
      perMessageDeflate: false,
    });
    await new Promise<void>((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", reject);
    });
    const link = new RelayLink(socket, hello);
    const welcomed = new Promise<void>((resolve) => {
      socket.on("message", (data) => {
        const text = (data as Buffer).toString();
        if (text === RELAY_PONG) return;
        const message = ApiToRelayMessage.parse(JSON.parse(text));
        if (message.type === "welcome") resolve();
        else if (message.type === "ports") link.reservedPorts = message;
        else link.received.push(message);
      });
    });
    socket.send(JSON.stringify(hello));
    await Promise.race([
      welcomed,
      link.closed.then(({ reason }) => Promise.reject(new Error(`closed: ${reason}`))),
    ]);
    return link;
  }

  /** Resolves once such a message has been received. */
  async waitForMessage(message: Partial<Revocation>): Promise<void> {
    await vi.waitFor(
      () => expect(this.received).toContainEqual(expect.objectContaining(message)),
      WAIT_OPTIONS,
    );
  }

  report(status: Partial<RelayStatus>): void {
    this.#socket.send(JSON.stringify({ type: "status", networks: [], tunnels: [], ...status }));
  }

  async close(): Promise<void> {
    this.#socket.close(1000);
    await this.closed;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#heartbeat);
    this.#socket.terminate();
  }
}
