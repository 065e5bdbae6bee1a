/**
 * One TCP connection to a tunnel over a WebSocket of its own (docs/protocols/agent-protocol.md, "A client's connection"):
 * hello and welcome, then frames with credit until both directions have ended.
 */
import type { Socket } from "node:net";
import WebSocket, { type RawData } from "ws";
import { CLOSE, findCloseName, shouldReconnect } from "../../protocol/wire/close-codes.ts";
import { parseCloseReason } from "../../protocol/wire/close-reason.ts";
import { SendWindows } from "../../protocol/wire/flow-control.ts";
import {
  CLIENT_STREAM,
  ClientWelcome,
  parseCodeAndText,
  parseCredit,
  FRAME,
  parseJsonPayload,
  PING,
  PROTOCOL_VERSION,
  RESET,
  STREAMS_SUBPROTOCOL,
  WelcomeVersion,
  type Frame,
  type FrameWriter,
} from "../../protocol/wire/frames.ts";
import { readFrames } from "../../protocol/wire/read-frames.ts";
import { explainServerVersion } from "../../protocol/wire/version-mismatch.ts";
import {
  HEARTBEAT_INTERVAL_MS,
  HEARTBEAT_TIMEOUT_MS,
  STREAM_WINDOW_BYTES,
  WIRE_MESSAGE_MAX_BYTES,
} from "../../protocol/limits.ts";
import type { ServerAccess } from "../server-access.ts";
import { FrameSplice } from "../tunnel/frame-splice.ts";
import { describeClose, explainError } from "../error-message.ts";
import { ElapsedTime } from "../tunnel/elapsed-time.ts";
import { FrameSender } from "../tunnel/frame-sender.ts";
import { collectAfterTransfer } from "../tunnel/garbage-collection.ts";
import { buildHello } from "../tunnel/hello.ts";
import { openWebSocket, skipMasking, toWebSocketUrl } from "../websocket.ts";
import { describeUnreadableMessage } from "../update-advice.ts";

/** The agent's local server is the reason. */
const ORIGIN_RESETS = new Set<number | undefined>([
  RESET.originUnreachable,
  RESET.originTimeout,
  RESET.originFailed,
]);

/** Why the connection could not be opened, or was lost. */
export interface ClientFailure {
  /** The name of a close code or of a reset code; undefined when the connection was lost. */
  reason: string | undefined;
  message: string;
  /** Says more than `reason`. */
  subcode?: string | undefined;
  /** Whether another attempt may succeed. */
  canRetry: boolean;
}

interface ClientConnectionOptions extends ServerAccess {
  /** A tunnel's id or name. */
  tunnel: string;
  /** @returns the paused local connection to join with the stream; null when the stream is not needed. */
  onWelcome(welcome: ClientWelcome): Socket | null;
  /** Called once. @param failure null when both directions have ended. */
  onEnd(failure: ClientFailure | null): void;
}

export class ClientConnection {
  readonly #options: ClientConnectionOptions;
  readonly #socket: WebSocket;
  readonly #sender: FrameSender;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #sinceReceived = new ElapsedTime();
  #windows = new SendWindows(0, 0);
  #splice: FrameSplice | undefined;
  #isEnded = false;

  constructor(options: ClientConnectionOptions) {
    this.#options = options;
    this.#socket = openSocket(options);
    this.#sender = new FrameSender(this.#socket);
    let problem = "";
    this.#socket.on("open", () => this.#sendHello());
    this.#socket.on("message", (data, isBinary) => this.#receive(data, isBinary));
    this.#socket.on("error", (error) => (problem = explainError(error)));
    this.#socket.on("close", (code, reason) =>
      this.#handleClose(code, reason.toString() || problem),
    );
    this.#heartbeat = setInterval(() => this.#beat(), HEARTBEAT_INTERVAL_MS);
  }

  get bytesToTunnel(): number {
    return this.#splice?.bytesFromSocket ?? 0;
  }

  get bytesFromTunnel(): number {
    return this.#splice?.bytesFromFrames ?? 0;
  }

  /** Ends the stream because the agent stops. */
  close(): void {
    this.#end({ reason: undefined, message: "the agent was stopped", canRetry: true });
  }

  // ── Frames out ──

  #send(write: (writer: FrameWriter) => void): void {
    this.#sender.send(write, "light");
  }

  #sendHello(): void {
    const hello = buildHello({ capabilities: [], connectionWindow: STREAM_WINDOW_BYTES });
    this.#send((writer) => writer.writeJson(FRAME.hello, 0, 0, hello));
    this.#sender.flush();
  }

  #beat(): void {
    if (this.#sinceReceived.ms > HEARTBEAT_TIMEOUT_MS) return this.#socket.terminate();
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(PING);
  }

  // ── Frames in ──

  #receive(data: RawData, isBinary: boolean): void {
    this.#sinceReceived.restart();
    if (!isBinary || this.#isEnded) return;
    collectAfterTransfer((data as Buffer).byteLength);
    let isValid = true;
    const isReadable = readFrames(data as Buffer, (frame) => {
      isValid &&= this.#isEnded || this.#receiveFrame(frame);
    });
    if (isReadable && isValid) return;
    this.#send((writer) =>
      writer.writeCodeAndText(FRAME.reset, CLIENT_STREAM, RESET.protocolError, "unexpected frame"),
    );
    const message = describeUnreadableMessage(this.#options.server);
    this.#end({ reason: "protocol_error", message, canRetry: true });
  }

  #receiveFrame(frame: Frame): boolean {
    if (frame.type === FRAME.reset) {
      this.#end(toFailure(parseCodeAndText(frame.payload)));
      return true;
    }
    if (!this.#splice) return frame.type === FRAME.welcome && this.#receiveWelcome(frame);
    if (frame.stream !== CLIENT_STREAM) return false;
    if (frame.type !== FRAME.credit) return this.#splice.receive(frame);
    const bytes = parseCredit(frame.payload);
    return bytes !== null && this.#windows.addCredit(CLIENT_STREAM, bytes);
  }

  #receiveWelcome(frame: Frame): boolean {
    const payload = parseJsonPayload(frame.payload);
    const { protocol } = WelcomeVersion.safeParse(payload).data ?? {};
    if (protocol !== undefined && protocol !== PROTOCOL_VERSION) {
      const explanation = explainServerVersion(protocol);
      this.#end({ reason: "unsupported_version", ...explanation, canRetry: false });
      return true;
    }
    const welcome = ClientWelcome.safeParse(payload);
    if (!welcome.success) return false;
    const socket = this.#options.onWelcome(welcome.data);
    if (!socket) {
      this.#end(null);
      return true;
    }
    const { streamWindow } = welcome.data;
    this.#windows = new SendWindows(streamWindow, streamWindow);
    this.#splice = new FrameSplice(socket, {
      id: CLIENT_STREAM,
      windows: this.#windows,
      localEnd: "the local program",
      send: (write) => this.#send(write),
      onComplete: () => this.#end(null),
      onBreak: (code, reason) => {
        this.#send((writer) =>
          writer.writeCodeAndText(FRAME.reset, CLIENT_STREAM, RESET.canceled, reason),
        );
        this.#end({ reason: findResetName(code), message: reason, canRetry: true });
      },
    });
    this.#splice.start();
    return true;
  }

  // ── Ends ──

  #handleClose(code: number, reason: string): void {
    const { message, subcode } = parseCloseReason(code, reason);
    this.#end({
      reason: findCloseName(code) ?? undefined,
      message: message || describeClose(code),
      subcode,
      canRetry: shouldReconnect(code),
    });
  }

  #end(failure: ClientFailure | null): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearInterval(this.#heartbeat);
    this.#sender.flush();
    this.#splice?.abort();
    this.#windows.close();
    this.#socket.close(failure?.reason === "protocol_error" ? CLOSE.protocol_error : 1000);
    this.#options.onEnd(failure);
  }
}

function openSocket({ server, token, authorities, tunnel }: ClientConnectionOptions): WebSocket {
  const url = toWebSocketUrl("/agent/streams", server);
  url.searchParams.set("tunnel", tunnel);
  return openWebSocket(url, STREAMS_SUBPROTOCOL, token.toString("base64url"), {
    maxPayload: WIRE_MESSAGE_MAX_BYTES,
    skipUTF8Validation: true,
    authorities,
    ...skipMasking(url),
  });
}

function toFailure(reset: { code: number; text: string } | null): ClientFailure {
  const reason = findResetName(reset?.code);
  const text = reset?.text || "the tunnel reset the connection";
  // Its addresses are those of another machine.
  const message = ORIGIN_RESETS.has(reset?.code) ? `at the tunnel's agent, ${text}` : text;
  return { reason, message, canRetry: true };
}

function findResetName(code: number | undefined): string | undefined {
  return Object.entries(RESET).find(([, known]) => known === code)?.[0];
}
