/**
 * A WebSocket to the database gateway, opened over a service binding: `new WebSocket(url)` could reach only a public
 * address. It implements the part of the standard interface that the driver uses.
 */
import { closeQuietly } from "../../durable-objects/websockets.ts";

type Kind = "open" | "message" | "close" | "error";

export class GatewaySocket {
  binaryType = "arraybuffer";
  #socket: WebSocket | undefined;
  readonly #events = new EventTarget();
  #closed = false;

  constructor(upgrade: Promise<Response>) {
    upgrade.then(
      (response) => this.#onUpgrade(response),
      (error: unknown) => this.#onError(error),
    );
  }

  get readyState(): number {
    if (this.#closed) return WebSocket.CLOSED;
    return this.#socket?.readyState ?? WebSocket.CONNECTING;
  }

  addEventListener(kind: Kind, listener: (event: Event) => void): void {
    this.#events.addEventListener(kind, listener);
  }

  send(data: ArrayBuffer | ArrayBufferView): void {
    this.#socket?.send(data);
  }

  close(code?: number, reason?: string): void {
    this.#closed = true;
    this.#socket?.close(code, reason);
  }

  #onUpgrade({ webSocket: socket, status }: Response): void {
    if (!socket) {
      this.#onError(new Error(`the database gateway answered ${status} instead of upgrading`));
      return;
    }
    if (this.#closed) {
      socket.accept();
      socket.close();
      return;
    }
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    socket.addEventListener("message", (event) => {
      this.#emit(new MessageEvent("message", { data: event.data as ArrayBuffer }));
    });
    socket.addEventListener("close", () => {
      if (!this.#closed) closeQuietly(socket);
      this.#closed = true;
      this.#emit(new Event("close"));
    });
    socket.addEventListener("error", ({ error }) => this.#onError(error));
    socket.accept();
    this.#emit(new Event("open"));
  }

  /** The driver treats the event as the error, so the event has a message. */
  #onError(error: unknown): void {
    this.#closed = true;
    const cause = error instanceof Error ? error : new Error(String(error));
    this.#emit(Object.assign(new Event("error"), { message: cause.message }));
  }

  #emit(event: Event): void {
    this.#events.dispatchEvent(event);
  }
}
