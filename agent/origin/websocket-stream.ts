/** One visitor's WebSocket, forwarded to the local server. */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import WebSocket from "ws";
import {
  CLOSE_CAPABILITY,
  parseCodeAndText,
  FLAG,
  FRAME,
  RESET,
  type Frame,
  type ResetCode,
} from "../../protocol/wire/frames.ts";
import { FRAME_DATA_MAX_BYTES, WEBSOCKET_MESSAGE_MAX_BYTES } from "../../protocol/limits.ts";
import { ORIGIN_CONNECT_MAX_MS } from "../limits.ts";
import { getWebOrigin } from "./target.ts";
import type { Done } from "../local-server/restart-wait.ts";
import type { RequestOpening, Stream, Wire } from "../tunnel/wire.ts";
import { utf8ToLatin1, toResponsePairs } from "./header-bytes.ts";
import type { RequestReport } from "../library/types.ts";
import { encodeResponseHead } from "./response-head.ts";
import type { OriginServer } from "./origin-server.ts";
import { describeOriginError, toReportedStatus, toResetCode } from "./origin-error.ts";
import { headerPairs } from "../../shared/raw-headers.ts";

/** Headers of the agent's own handshake, which the library writes and checks. */
const HANDSHAKE_HEADERS = new Set(["sec-websocket-accept", "sec-websocket-extensions"]);

/** The library's errors about what the local server sent. All others mean a violation of the protocol. */
const INVALID_MESSAGES = new Map([
  ["WS_ERR_INVALID_UTF8", { code: 1007, reason: "the local server sent text that is not UTF-8" }],
  ["WS_ERR_TOO_MANY_BUFFERED_PARTS", { code: 1008, reason: "the message has too many parts" }],
  ["WS_ERR_UNSUPPORTED_MESSAGE_LENGTH", { code: 1009, reason: "the message is too large" }],
  ["WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH", { code: 1009, reason: "the message is too large" }],
]);
const PROTOCOL_VIOLATION = { code: 1002, reason: "the local server sent an invalid frame" };

interface Message {
  isBinary: boolean;
  rest: Buffer;
}

export class WebSocketStream implements Stream {
  readonly isDrainable = false;
  readonly #origin: OriginServer;
  readonly #wire: Wire;
  readonly #id: number;
  readonly #report: RequestReport;
  readonly #pairs: string[];
  /** Set by `start`. */
  #socket!: WebSocket;
  #cancelWait = (): void => undefined;
  readonly #startedAtMs = performance.now();
  readonly #backlog: Message[] = [];
  /** The local server's close, which is sent to the visitor after the backlog. */
  #closing: { code: number; reason: string } | undefined;
  #isAccepted = false;
  #isEnded = false;

  constructor(origin: OriginServer, wire: Wire, id: number, { head, requestId }: RequestOpening) {
    const [, target, ...pairs] = head as [string, string, ...string[]];
    this.#origin = origin;
    this.#wire = wire;
    this.#id = id;
    this.#report = origin.createReport({
      kind: "websocket",
      method: "GET",
      path: utf8ToLatin1(target),
      requestId,
    });
    origin.rewriteRequest(pairs);
    this.#pairs = pairs;
  }

  // ── Called by the wire ──

  start(): void {
    try {
      this.#socket = this.#connect(this.#pairs);
    } catch (error) {
      // The visitor's request is not a valid handshake, for example with a repeated subprotocol.
      this.#fail(RESET.originFailed, describeOriginError(error as Error, this.#origin.target));
    }
  }

  receive(frame: Frame): void {
    if (frame.type === FRAME.close) return this.#closeSocket(frame);
    if (frame.type !== FRAME.text && frame.type !== FRAME.binary) return;
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    const { byteLength } = frame.payload;
    this.#count("bytesIn", byteLength, !(frame.flags & FLAG.more));
    // Parts of a message are forwarded as parts, and never assembled here.
    const options = { binary: frame.type === FRAME.binary, fin: !(frame.flags & FLAG.more) };
    this.#socket.send(frame.payload, options, () => {
      if (!this.#isEnded && byteLength > 0)
        this.#wire.send((w) => w.writeCredit(this.#id, byteLength));
    });
  }

  abort(reason: string): void {
    const wasAnswered = this.#isAccepted || this.#isEnded;
    this.#end();
    this.#cancelWait();
    this.#socket.terminate();
    // An accepted WebSocket has been reported already.
    if (wasAnswered) return;
    this.#report.abortReason = reason;
    this.#reportAnswer(0);
  }

  // ── Inside ──

  #connect(pairs: string[]): WebSocket {
    const url = getWebOrigin(this.#origin.target).replace(/^http/, "ws");
    const { protocols, headers } = splitPairs(pairs);
    const socket = new WebSocket(url, protocols, {
      headers: headers as Record<string, never>,
      perMessageDeflate: false,
      maxPayload: WEBSOCKET_MESSAGE_MAX_BYTES,
      handshakeTimeout: ORIGIN_CONNECT_MAX_MS,
      createConnection: ((_options: unknown, done: Done<Socket>) => {
        this.#cancelWait = this.#origin.connect((...result) => {
          const [, connection] = result;
          connection?.setTimeout(ORIGIN_CONNECT_MAX_MS);
          done(...result);
        });
      }) as never,
      // The library would normalize the target as a URL; the local server must receive it unchanged.
      finishRequest: (request) => {
        try {
          request.path = this.#report.path;
          request.end();
        } catch (error) {
          // HTTP does not allow this target. An exception here would leave the handshake open.
          request.destroy(error as Error);
        }
      },
    });
    // Two events, because the library validates the response between them.
    let accepted: IncomingMessage;
    socket.on("upgrade", (response) => (accepted = response));
    socket.on("open", () => this.#onAccepted(accepted));
    socket.on("unexpected-response", (_request, response) => this.#onRefused(response));
    socket.on("message", (data, isBinary) => this.#onMessage(data as Buffer, isBinary));
    socket.on("error", (error) => this.#onError(error));
    socket.on("close", (code, reason) => this.#onClose(code, reason.toString()));
    return socket;
  }

  #onAccepted(response: IncomingMessage): void {
    if (!this.#sendHead(101, response)) return;
    this.#isAccepted = true;
    this.#reportAnswer(101);
    this.#origin.reportOpenStream(this.#report);
  }

  /** Forwards the local server's response to a refused handshake. */
  #onRefused(response: IncomingMessage): void {
    const status = response.statusCode ?? 502;
    if (!this.#sendHead(status, response)) return;
    let room = FRAME_DATA_MAX_BYTES;
    response.on("data", (chunk: Buffer) => {
      const part = chunk.subarray(0, room);
      room -= part.byteLength;
      if (part.byteLength > 0) this.#wire.send((w) => w.writeData(this.#id, part));
    });
    response.on("close", () => {
      if (this.#isEnded) return;
      this.#wire.send((w) => w.writeBytes(FRAME.data, FLAG.end, this.#id, new Uint8Array()));
      this.#finish();
    });
    this.#reportAnswer(status);
  }

  /** @returns false when the head is too large; then both ends are closed. */
  #sendHead(status: number, response: IncomingMessage): boolean {
    const head = encodeResponseHead(status, this.#toPairs(response));
    if ("problem" in head) {
      this.#fail(RESET.originFailed, head.problem);
      this.#socket.terminate();
      return false;
    }
    this.#wire.send((writer) => writer.writeText(FRAME.response, 0, this.#id, head.payload));
    return true;
  }

  #toPairs(response: IncomingMessage): string[] {
    const pairs = toResponsePairs(response.rawHeaders);
    const forwarded: string[] = [];
    for (const [name, value] of headerPairs(pairs)) {
      if (!HANDSHAKE_HEADERS.has(name.toLowerCase())) forwarded.push(name, value);
    }
    return forwarded;
  }

  #onMessage(data: Buffer, isBinary: boolean): void {
    // The tunnel has reset the stream, or has no use for what follows the visitor's Close.
    if (this.#isEnded) return;
    this.#backlog.push({ isBinary, rest: data });
    this.#sendBacklog();
  }

  /** Without credit the backlog waits, and the local server is paused. */
  #sendBacklog(): void {
    for (let next = this.#backlog[0]; next; next = this.#backlog[0]) {
      const available = this.#wire.windows.available(this.#id);
      if (available <= 0 && next.rest.byteLength > 0) {
        this.#socket.pause();
        return this.#wire.windows.whenAvailable(this.#id, () => this.#resume());
      }
      const part = next.rest.subarray(0, Math.min(Math.max(available, 0), FRAME_DATA_MAX_BYTES));
      next.rest = next.rest.subarray(part.byteLength);
      const type = next.isBinary ? FRAME.binary : FRAME.text;
      const flags = next.rest.byteLength > 0 ? FLAG.more : 0;
      this.#wire.windows.recordMessageSent(this.#id, part.byteLength);
      this.#wire.send((writer) => writer.writeBytes(type, flags, this.#id, part));
      this.#count("bytesOut", part.byteLength, flags === 0);
      if (flags === 0) this.#backlog.shift();
    }
    if (this.#closing) this.#sendClose(this.#closing);
  }

  #resume(): void {
    if (this.#isEnded) return;
    this.#sendBacklog();
    if (this.#backlog.length === 0) this.#socket.resume();
  }

  #onClose(code: number, reason: string): void {
    if (this.#isEnded) return;
    this.#closing ??= { code, reason };
    if (this.#backlog.length === 0) this.#sendClose(this.#closing);
  }

  #sendClose({ code, reason }: { code: number; reason: string }): void {
    this.#wire.send((writer) => writer.writeCodeAndText(FRAME.close, this.#id, code, reason));
    this.#finish();
  }

  #closeSocket(frame: Frame): void {
    const close = parseCodeAndText(frame.payload);
    const isAnswered = this.#wire.tunnelCapabilities.includes(CLOSE_CAPABILITY);
    if (!isAnswered) {
      this.#finish();
      // A paused socket would not read the local server's Close.
      this.#socket.resume();
    }
    try {
      if (!close || close.code === 1005) this.#socket.close();
      else this.#socket.close(close.code, close.text);
    } catch {
      // A code that may not be sent, such as 1006: the visitor's connection was lost, so this one is dropped too.
      if (isAnswered) this.#finish();
      this.#socket.terminate();
    }
  }

  #onError(error: NodeJS.ErrnoException): void {
    if (this.#isEnded) return;
    if (error.code?.startsWith("WS_ERR_")) {
      // The library closes the connection with this code, and the visitor's is closed with it too.
      const { code, reason } = INVALID_MESSAGES.get(error.code) ?? PROTOCOL_VIOLATION;
      return this.#onClose(code, reason);
    }
    // After the handshake a close event follows.
    if (this.#isAccepted || this.#closing !== undefined) return;
    this.#fail(toResetCode(error), describeOriginError(error, this.#origin.target));
  }

  #fail(code: ResetCode, reason: string): void {
    this.#end();
    // First, so that the tunnel knows it when it chooses an agent for this handshake again.
    if (code === RESET.originUnreachable) this.#origin.reportUnreachable();
    this.#wire.reset(this.#id, code, reason);
    this.#reportAnswer(toReportedStatus(code), reason);
  }

  #finish(): void {
    this.#end();
    this.#wire.windows.drop(this.#id);
    this.#wire.finish(this.#id);
  }

  #end(): void {
    if (this.#isAccepted && !this.#isEnded) this.#origin.reportClosedStream(this.#report);
    this.#isEnded = true;
  }

  #count(side: "bytesIn" | "bytesOut", bytes: number, isEndOfMessage: boolean): void {
    this.#report[side] += bytes;
    if (isEndOfMessage) this.#report.messages += 1;
  }

  #reportAnswer(status: number, problem?: string): void {
    this.#report.status = status;
    this.#report.durationMs = Math.round((performance.now() - this.#startedAtMs) * 10) / 10;
    this.#report.problem = problem;
    this.#origin.reportRequest(this.#report);
  }
}

/** The library offers and checks subprotocols itself; repeated headers become lists. */
function splitPairs(pairs: string[]): { protocols: string[]; headers: Record<string, string[]> } {
  const headers: Record<string, string[]> = {};
  let protocols: string[] = [];
  for (const [name, utf8] of headerPairs(pairs)) {
    const value = utf8ToLatin1(utf8);
    if (name === "sec-websocket-protocol") protocols = value.split(",").map((part) => part.trim());
    else (headers[name] ??= []).push(value);
  }
  return { protocols, headers };
}
