/** The handshake of a visitor's WebSocket, until the local server accepts or refuses it. */
import { ReceiveWindow } from "../../../protocol/wire/flow-control.ts";
import {
  FLAG,
  FRAME,
  RESET,
  parseResponseHead,
  type Frame,
} from "../../../protocol/wire/frames.ts";
import type { ErrorCode } from "../../../protocol/errors.ts";
import { STREAM_WINDOW_BYTES } from "../../../protocol/limits.ts";
import type { AgentLink, Stream } from "../agents/agent-link.ts";
import type { Recording } from "../captures/recording.ts";
import { hasNoBody, buildResponseHeaders, type RequestHead } from "./heads.ts";

/** The headers of the local server's 101, or its own response when it refused, or the code of a failure. */
export type HandshakeOutcome = { headers: Headers } | Response | ErrorCode;

export class WebSocketHandshake implements Stream {
  readonly id: number;
  readonly outcome: Promise<HandshakeOutcome>;
  readonly #link: AgentLink;
  readonly #recording: Recording | null;
  readonly #settle: (outcome: HandshakeOutcome) => void;
  readonly #window = new ReceiveWindow(STREAM_WINDOW_BYTES);
  #refusal: { status: number; headers: Headers; chunks: Uint8Array[] } | undefined;
  #isAccepted = false;
  /** Messages that the local server sent right after its 101. */
  #early: Frame[] = [];
  /** The end of the stream, if it came between the 101 and `handOver`. */
  #end: ((stream: Stream) => void) | undefined;

  constructor(link: AgentLink, { parts, flags }: RequestHead, recording: Recording | null) {
    const { promise, resolve } = Promise.withResolvers<HandshakeOutcome>();
    this.#link = link;
    this.#recording = recording;
    this.#settle = resolve;
    this.outcome = promise;
    this.id = link.open(this);
    link.send((writer) => writer.writeJson(FRAME.request, flags, this.id, parts));
  }

  /** From now on the stream belongs to the visitor's WebSocket. */
  handOver(stream: Stream): void {
    if (!this.#end) this.#link.resume(this.id, stream);
    for (const frame of this.#early) stream.onFrame(frame);
    this.#end?.(stream);
  }

  onFrame(frame: Frame): boolean {
    if (frame.type === FRAME.response) return this.#receiveHead(frame);
    if (frame.type === FRAME.data) return this.#receiveBody(frame);
    if (!this.#isAccepted) return false;
    this.#early.push({ ...frame, payload: frame.payload.slice() });
    return this.#window.recordReceived(frame.payload.byteLength);
  }

  onReset(code: number, reason: string): void {
    this.#end = (stream) => stream.onReset(code, reason);
    if (code === RESET.originUnreachable) this.#settle("origin_unreachable");
    else if (code === RESET.originTimeout) this.#settle("origin_timeout");
    else if (code === RESET.refused) this.#settle("agent_offline");
    else this.#settle("origin_failed");
  }

  onConnectionLost(): void {
    this.#end = (stream) => stream.onConnectionLost();
    this.#settle("agent_offline");
  }

  #receiveHead(frame: Frame): boolean {
    const head = parseResponseHead(frame.payload);
    if (!head || this.#refusal || this.#isAccepted) return false;
    this.#tryHttp(() => {
      const headers = buildResponseHeaders(head.pairs);
      this.#recording?.startResponse(head.status, head.pairs);
      this.#isAccepted = head.status === 101;
      if (this.#isAccepted) this.#settle({ headers });
      else this.#refusal = { status: head.status, headers, chunks: [] };
    });
    if (this.#refusal && frame.flags & FLAG.end) this.#respondWithRefusal();
    return true;
  }

  /** A refusal is held in memory as a whole, so it may not exceed the window. */
  #receiveBody(frame: Frame): boolean {
    if (!this.#refusal || !this.#window.recordReceived(frame.payload.byteLength)) return false;
    this.#refusal.chunks.push(frame.payload);
    this.#recording?.addResponseBytes(frame.payload);
    if (frame.flags & FLAG.end) this.#respondWithRefusal();
    return true;
  }

  #respondWithRefusal(): void {
    const { status, headers, chunks } = this.#refusal!;
    headers.delete("content-length");
    const whole = new Blob(chunks);
    this.#window.end();
    const grant = this.#window.recordConsumed(whole.size);
    if (grant > 0) this.#link.send((writer) => writer.writeCredit(this.id, grant));
    const body = hasNoBody(status) ? null : whole;
    this.#tryHttp(() => {
      this.#settle(new Response(body, { status, headers, encodeBody: "manual" }));
      this.#recording?.complete();
      this.#link.finish(this.id);
    });
  }

  /** A status or a header that HTTP does not allow throws. */
  #tryHttp(act: () => void): void {
    try {
      act();
    } catch {
      this.#link.reset(this.id, RESET.protocolError, "invalid HTTP response");
      this.#settle("origin_failed");
    }
  }
}
