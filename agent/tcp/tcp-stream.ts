/** One TCP connection of a client of `underpass connect`, which arrives as a stream of the agent's wire. */
import type { Socket } from "node:net";
import { RESET, type Frame, type ResetCode, type StreamPeer } from "../../protocol/wire/frames.ts";
import { FrameSplice } from "../tunnel/frame-splice.ts";
import type { Stream, Wire } from "../tunnel/wire.ts";
import type { OnConnection } from "./connection-report.ts";
import { encodeProxyHeader, type ProxyProtocol } from "./proxy-protocol.ts";
import { connectLocal, type TcpTarget } from "./tcp-target.ts";

export interface TcpStreamOptions {
  target: TcpTarget;
  proxyProtocol: ProxyProtocol | undefined;
  onConnection: OnConnection;
}

export class TcpStream implements Stream {
  readonly isDrainable = false;
  readonly #wire: Wire;
  readonly #id: number;
  readonly #peer: StreamPeer;
  readonly #options: TcpStreamOptions;
  readonly #startedAtMs = performance.now();
  #socket!: Socket;
  #splice!: FrameSplice;
  #onFinished!: (problem?: string) => void;
  #isFinished = false;

  constructor(wire: Wire, id: number, peer: StreamPeer, options: TcpStreamOptions) {
    this.#wire = wire;
    this.#id = id;
    this.#peer = peer;
    this.#options = options;
  }

  start(): void {
    const { target, proxyProtocol } = this.#options;
    let hasFailed = false;
    this.#socket = connectLocal(target, (failure) => {
      if (!failure) return this.#splice.start();
      hasFailed = true;
      this.#fail(failure.code, failure.message);
    });
    if (proxyProtocol !== undefined) {
      const { address, port } = this.#peer;
      const head = { address, port, localAddress: "", localPort: 0 };
      this.#socket.write(encodeProxyHeader(proxyProtocol, head));
    }
    this.#splice = new FrameSplice(this.#socket, {
      id: this.#id,
      windows: this.#wire.windows,
      localEnd: "the local server",
      send: (write) => this.#wire.send(write),
      onComplete: () => {
        this.#wire.finish(this.#id);
        this.#finish();
      },
      onBreak: (code, reason) => {
        if (!hasFailed) this.#fail(code, reason);
      },
    });
    this.#onFinished = this.#options.onConnection(() => ({
      address: this.#peer.address,
      via: "connect",
      durationMs: Math.round(performance.now() - this.#startedAtMs),
      bytesIn: this.#splice.bytesFromFrames,
      bytesOut: this.#splice.bytesFromSocket,
    }));
  }

  receive(frame: Frame): void {
    if (!this.#splice.receive(frame)) {
      this.#splice.abort();
      this.#fail(RESET.protocolError, "the data exceeds its window, or a frame is invalid");
    }
  }

  abort(): void {
    this.#splice.abort();
    this.#finish();
  }

  #fail(code: ResetCode, reason: string): void {
    this.#wire.reset(this.#id, code, reason);
    this.#finish(code === RESET.originFailed ? undefined : reason);
  }

  #finish(problem?: string): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    this.#onFinished(problem);
  }
}
