/**
 * A connection of HTTP/1.1 in memory, on which a session of HTTP/2 sends its requests, one after another. So all requests are
 * checked, limited and forwarded by the same code, and connections to workerd are used again.
 */
import type { ServerHttp2Stream } from "node:http2";
import { Duplex } from "node:stream";
import { StreamExchange, type BodyLimits } from "./stream-exchange.ts";

export class StreamConnection extends Duplex {
  readonly canStopRequests = true;
  bytesRead = 0;
  bytesWritten = 0;
  readonly #onIdle: () => void;
  #exchange: StreamExchange | undefined;

  /** @param onIdle called when another request may be sent. */
  constructor(onIdle: () => void) {
    // Nothing is read ahead: what waits does so in the stream.
    super({ readableHighWaterMark: 1, writableHighWaterMark: 1 });
    this.#onIdle = onIdle;
    this.on("error", () => undefined);
    this.on("resume", () => this.#exchange && this.#becomeIdle(this.#exchange));
  }

  /** Whether it will never be used again. */
  get isEnded(): boolean {
    return this.destroyed || this.writableEnded;
  }

  /** Sends the request of a stream. */
  send(stream: ServerHttp2Stream, rawHeaders: readonly string[], limits: BodyLimits): void {
    const exchange = new StreamExchange(stream, rawHeaders, {
      ...limits,
      pass: (bytes) => {
        this.bytesRead += bytes.length;
        return this.push(bytes);
      },
      onClosed: () => this.#handleClosed(exchange),
    });
    this.#exchange = exchange;
  }

  /** A stream that was closed too early takes the connection with it, and by that the request at the local server. */
  #handleClosed(exchange: StreamExchange): void {
    if (exchange !== this.#exchange) return;
    if (!exchange.isComplete || this.isEnded) this.destroy();
    else this.#becomeIdle(exchange);
  }

  /**
   * The last bytes of the response may still be on their way to the socket of the session, and those of the request on their way to
   * workerd, if it has answered early.
   */
  #becomeIdle(exchange: StreamExchange): void {
    if (exchange !== this.#exchange || !exchange.isComplete || this.isEnded) return;
    if (this.writableLength > 0 || this.readableLength > 0 || this.isPaused()) return;
    exchange.destroy();
    this.#exchange = undefined;
    this.#onIdle();
  }

  override _read(): void {
    this.#exchange?.readMore();
  }

  override _write(bytes: Buffer, _: BufferEncoding, handleWritten: (error?: Error | null) => void) {
    const exchange = this.#exchange;
    this.bytesWritten += bytes.length;
    if (!exchange) return void this.destroy();
    exchange.write(bytes, (error) => {
      handleWritten(error);
      this.#becomeIdle(exchange);
    });
  }

  override _final(handleFinished: () => void): void {
    this.once("close", handleFinished);
    if (this.#exchange) this.#exchange.end();
    else this.destroy();
  }

  /** Like that of a socket. */
  resetAndDestroy(): void {
    this.destroy();
  }

  override _destroy(error: Error | null, handleDestroyed: (error: Error | null) => void): void {
    this.#exchange?.destroy();
    handleDestroyed(error);
  }
}
