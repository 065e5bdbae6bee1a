/** One TCP connection of a client of `underpass connect`, which arrives as a stream of the agent's wire. */
import type { Socket } from "node:net";
import { STREAM_WINDOW_BYTES } from "../../protocol/limits.ts";
import { RESET, type Frame, type ResetCode, type StreamPeer } from "../../protocol/wire/frames.ts";
import { FrameSplice } from "../tunnel/frame-splice.ts";
import type { Stream, Wire } from "../tunnel/wire.ts";
import type { OnConnection } from "./connection-report.ts";
import { encodeProxyHeader, type ProxyProtocol } from "./proxy-protocol.ts";
import type { LocalTcpServer } from "./local-tcp-server.ts";

interface TcpStreamOptions {
  server: LocalTcpServer;
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
  #cancelConnect = (): void => undefined;
  /** undefined until the local server has accepted the connection. */
  #splice: FrameSplice | undefined;
  /** What the client has sent before. */
  readonly #unsent: Frame[] = [];
  #unsentBytes = 0;
  #onFinished!: (problem?: string) => void;
  #isFinished = false;

  constructor(wire: Wire, id: number, peer: StreamPeer, options: TcpStreamOptions) {
    this.#wire = wire;
    this.#id = id;
    this.#peer = peer;
    this.#options = options;
  }

  start(): void {
    this.#onFinished = this.#options.onConnection(() => ({
      address: this.#peer.address,
      via: "connect",
      durationMs: Math.round(performance.now() - this.#startedAtMs),
      bytesIn: this.#splice?.bytesFromFrames ?? 0,
      bytesOut: this.#splice?.bytesFromSocket ?? 0,
    }));
    this.#cancelConnect = this.#options.server.connect((...[failure, socket]) => {
      if (failure) this.#fail(failure.code, failure.message);
      else this.#serve(socket);
    });
  }

  receive(frame: Frame): void {
    if (this.#splice) return this.#forward(this.#splice, frame);
    this.#unsent.push(frame);
    this.#unsentBytes += frame.payload.byteLength;
    if (this.#unsentBytes > STREAM_WINDOW_BYTES) this.#failProtocol();
  }

  abort(): void {
    this.#close();
    this.#finish();
  }

  #serve(socket: Socket): void {
    const { proxyProtocol } = this.#options;
    if (proxyProtocol !== undefined) {
      const { address, port } = this.#peer;
      const head = { address, port, localAddress: "", localPort: 0 };
      socket.write(encodeProxyHeader(proxyProtocol, head));
    }
    const splice = new FrameSplice(socket, {
      id: this.#id,
      windows: this.#wire.windows,
      localEnd: "the local server",
      send: (write) => this.#wire.send(write),
      onComplete: () => {
        this.#wire.finish(this.#id);
        this.#finish();
      },
      onBreak: (code, reason) => this.#fail(code, reason),
    });
    this.#splice = splice;
    for (const frame of this.#unsent.splice(0)) this.#forward(splice, frame);
    splice.start();
  }

  #forward(splice: FrameSplice, frame: Frame): void {
    if (!splice.receive(frame)) this.#failProtocol();
  }

  #failProtocol(): void {
    this.#close();
    this.#fail(RESET.protocolError, "the data exceeds its window, or a frame is invalid");
  }

  #close(): void {
    if (this.#splice) this.#splice.abort();
    else this.#cancelConnect();
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
