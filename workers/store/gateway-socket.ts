/**
 * A WebSocket to the database gateway, opened over a service binding: `new WebSocket(url)` could reach it by
 * a public address only. Has as much of the standard's shape as the driver uses.
 */

type Kind = "open" | "message" | "close" | "error";

export class GatewaySocket {
  binaryType = "arraybuffer";
  #socket: WebSocket | undefined;
  readonly #events = new EventTarget();
  #closed = false;

  constructor(upgrade: Promise<Response>) {
    upgrade.then(
      (response) => this.#opened(response),
      (error: unknown) => this.#failed(error),
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

  #opened({ webSocket: socket, status }: Response): void {
    if (!socket) {
      this.#failed(new Error(`the database gateway answered ${status} instead of upgrading`));
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
      this.#closed = true;
      this.#emit(new Event("close"));
    });
    socket.addEventListener("error", ({ error }) => this.#failed(error));
    socket.accept();
    this.#emit(new Event("open"));
  }

  /** The driver passes on what it gets as the error itself. */
  #failed(error: unknown): void {
    this.#closed = true;
    const cause = error instanceof Error ? error : new Error(String(error));
    this.#emit(Object.assign(new Event("error"), { message: cause.message }));
  }

  #emit(event: Event): void {
    this.#events.dispatchEvent(event);
  }
}
