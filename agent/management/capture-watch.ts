/**
 * Captured requests as they happen: `GET /inspector/ws` (docs/protocols/live-view.md). It reconnects until the server
 * rejects it permanently. A reader that wants no gap reads the list when `watching` is emitted.
 */
import { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import type WebSocket from "ws";
import { z } from "zod";
import { CaptureSummary } from "../../protocol/schemas/inspector/captures.ts";
import {
  WATCH_CLOSE,
  WATCH_PING,
  WATCH_PING_INTERVAL_MS,
  WATCH_PONG,
  WATCH_PROTOCOL,
} from "../../protocol/captures/watch-protocol.ts";
import { parseJson } from "../../shared/json.ts";
import { describeOtherAnswer, explainError } from "../error-message.ts";
import { getBackOffMs } from "../back-off.ts";
import { RejectionError } from "../rejection-error.ts";
import { AnyErrorBody } from "../service-api.ts";
import { openWebSocket, toWebSocketUrl } from "../websocket.ts";
import type { ManagementApi } from "./management-api.ts";
import { describeUnreadableMessage } from "../update-advice.ts";

const MESSAGE_MAX_BYTES = 16 * 1024 * 1024;
const REFUSAL_MAX_BYTES = 64 * 1024;

const Message = z.union([
  z.object({ type: z.literal("requests"), requests: z.array(CaptureSummary) }),
  z.object({ type: z.literal("missed"), count: z.int() }),
  z.object({ type: z.literal("sync"), n: z.int() }),
  CaptureSummary,
]);

interface Events {
  /** Requests that end from now on are received. Emitted again after each reconnect. */
  watching: [];
  captures: [CaptureSummary[]];
  /** The server did not send this many requests, because they were received too slowly. */
  missed: [count: number];
  disconnected: [reason: string];
  rejected: [rejection: RejectionError];
}

export class CaptureWatch extends EventEmitter<Events> {
  readonly #api: ManagementApi;
  readonly #url: URL;
  #socket: WebSocket | undefined;
  #retry: NodeJS.Timeout | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  #isPongMissing = false;
  #failures = 0;
  #isClosed = false;
  /** Why the connection could not be opened, which its close code does not say. */
  #problem = "";

  /** @param tunnelId undefined: all tunnels of the organization. */
  constructor(api: ManagementApi, tunnelId: string | undefined) {
    super();
    this.#api = api;
    this.#url = toWebSocketUrl("/inspector/ws?batch=1", api.endpoint.server);
    if (tunnelId !== undefined) this.#url.searchParams.set("tunnel_id", tunnelId);
  }

  start(): void {
    this.#problem = "";
    const { bearer } = this.#api.credential;
    const { authorities } = this.#api.endpoint;
    const options = { maxPayload: MESSAGE_MAX_BYTES, authorities };
    const socket = openWebSocket(this.#url, WATCH_PROTOCOL, bearer, options);
    this.#socket = socket;
    socket.on("open", () => this.#handleOpen());
    socket.on("message", (data: Buffer) => this.#receive(data.toString()));
    let isRefused = false;
    socket.on("unexpected-response", (_, response) => {
      isRefused = true;
      void this.#readRefusal(response).then((rejection) => {
        if (rejection) this.#reject(rejection);
        else this.#retryLater();
      });
    });
    socket.on("error", (error) => (this.#problem ||= explainError(error)));
    socket.on("close", (code) => {
      if (!isRefused) this.#handleClose(code);
    });
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    clearInterval(this.#heartbeat);
    this.#socket?.close();
  }

  #handleOpen(): void {
    this.#failures = 0;
    this.#isPongMissing = false;
    // The server closes a connection with some seconds of delay if the client has never sent anything on it.
    this.#socket?.send(WATCH_PING);
    this.#heartbeat = setInterval(() => this.#beat(), WATCH_PING_INTERVAL_MS);
    this.emit("watching");
  }

  /** After a laptop's sleep a dead connection is noticed only because the answer is missing. */
  #beat(): void {
    if (this.#isPongMissing) return this.#socket?.terminate();
    this.#isPongMissing = true;
    this.#socket?.send(WATCH_PING);
  }

  #receive(text: string): void {
    this.#isPongMissing = false;
    if (text === WATCH_PONG) return;
    const message = parseMessage(text);
    if (!message) {
      const explanation = describeUnreadableMessage(this.#api.endpoint.server);
      return this.#reject(new RejectionError("unsupported_version", explanation));
    }
    if (!("type" in message)) this.emit("captures", [message]);
    else if (message.type === "requests") this.emit("captures", message.requests);
    else if (message.type === "missed") this.emit("missed", message.count);
    else this.#socket?.send(text);
  }

  async #readRefusal(response: IncomingMessage): Promise<RejectionError | null> {
    const status = response.statusCode ?? 0;
    const failure = AnyErrorBody.safeParse(await readJson(response)).data;
    const message = failure?.message ?? describeOtherAnswer(status, "a WebSocket");
    this.#problem = message;
    if (status === 429 || status >= 500) return null;
    return this.#api.credential.explain(
      new RejectionError(failure?.error ?? String(status), message),
    );
  }

  #handleClose(code: number): void {
    clearInterval(this.#heartbeat);
    if (code === WATCH_CLOSE.session_ended) {
      return this.#reject(this.#api.credential.explain(new RejectionError("unauthorized", "")));
    }
    if (code === WATCH_CLOSE.going_away) this.#problem = "the server restarts";
    this.#retryLater();
  }

  #retryLater(): void {
    if (this.#isClosed) return;
    clearTimeout(this.#retry);
    // Once an outage, however many attempts it takes.
    if (this.#failures === 0) this.emit("disconnected", this.#problem || "the connection was lost");
    this.#retry = setTimeout(() => this.start(), getBackOffMs(this.#failures));
    this.#failures += 1;
  }

  #reject(rejection: RejectionError): void {
    if (this.#isClosed) return;
    this.close();
    this.emit("rejected", rejection);
  }
}

function parseMessage(text: string): z.output<typeof Message> | undefined {
  return Message.safeParse(parseJson(text)).data;
}

async function readJson(response: IncomingMessage): Promise<unknown> {
  let text = "";
  try {
    for await (const chunk of response) {
      text += String(chunk);
      if (text.length > REFUSAL_MAX_BYTES) return undefined;
    }
    return JSON.parse(text);
  } catch {
    // An error page of a proxy is not JSON: the status says enough.
    return undefined;
  }
}
