/** The relay's WebSocket to the API (protocol/relay/link.ts), which reconnects whenever it is lost. */
import { WebSocket } from "ws";
import {
  RELAY_HEARTBEAT_INTERVAL_MS,
  RELAY_HEARTBEAT_TIMEOUT_MS,
  RELAY_LINK_MESSAGE_MAX_BYTES,
} from "../protocol/relay/limits.ts";
import {
  RELAY_PING,
  RELAY_PONG,
  type RelayHello,
  type RelayStatus,
  ApiToRelayMessage,
} from "../protocol/relay/link.ts";
import type { LinkState } from "./associations.ts";
import { parseJson } from "../shared/json.ts";
import { getErrorMessage } from "../shared/error-message.ts";
import type { Log } from "./log.ts";

const LINK_RETRY_MIN_MS = 250;
const LINK_RETRY_MAX_MS = 10_000;
const LINK_WELCOME_MAX_MS = 10_000;

interface ApiLinkOptions {
  apiUrl: string;
  /** Host header, when the URL names an address. */
  apiHost: string | undefined;
  secret: string;
  hello: RelayHello;
  log: Log;
  /** Called when the API has welcomed the relay: the next status must be complete. */
  onWelcome(): void;
  onMessage(message: Exclude<ApiToRelayMessage, { type: "welcome" }>): void;
}

export class ApiLink implements LinkState {
  connectedAtMs: number | null = null;
  readonly #options: ApiLinkOptions;
  #socket: WebSocket | undefined;
  #isConnected = false;
  #isClosed = false;
  #retryMs = LINK_RETRY_MIN_MS;
  #retry: NodeJS.Timeout | undefined;
  /** The last problem, which is logged once and not with every attempt. */
  #problem = "";

  constructor(options: ApiLinkOptions) {
    this.#options = options;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  connect(): void {
    if (this.#isClosed) return;
    const { apiUrl, apiHost, secret, hello } = this.#options;
    const url = new URL(`${apiUrl}/relays/connect`);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    url.searchParams.set("relay_id", hello.relayId);
    const socket = new WebSocket(url.href, {
      headers: {
        authorization: `Bearer ${secret}`,
        ...(apiHost !== undefined && { host: apiHost }),
      },
      handshakeTimeout: LINK_WELCOME_MAX_MS,
      maxPayload: RELAY_LINK_MESSAGE_MAX_BYTES,
      perMessageDeflate: false,
    });
    this.#socket = socket;
    let lastReceivedAtMs = performance.now();
    let problem = "";
    const heartbeat = setInterval(() => {
      const silentMs = performance.now() - lastReceivedAtMs;
      const maxMs = this.#isConnected ? RELAY_HEARTBEAT_TIMEOUT_MS : LINK_WELCOME_MAX_MS;
      if (silentMs > maxMs) {
        problem = "the API does not answer";
        socket.terminate();
      } else if (socket.readyState === WebSocket.OPEN) {
        socket.send(RELAY_PING);
      }
    }, RELAY_HEARTBEAT_INTERVAL_MS);
    socket.on("open", () => socket.send(JSON.stringify(hello)));
    socket.on("error", (error) => (problem ||= describeError(error)));
    socket.on("message", (data) => {
      lastReceivedAtMs = performance.now();
      this.#handleMessage((data as Buffer).toString());
    });
    socket.on("close", (code, reason) => {
      clearInterval(heartbeat);
      this.#handleClose(problem || `closed with ${code} ${reason.toString()}`.trim());
    });
  }

  /** @returns false when the relay is not connected. */
  send(status: RelayStatus): boolean {
    if (!this.#isConnected || !this.#socket) return false;
    this.#socket.send(JSON.stringify(status));
    return true;
  }

  /** Resolves when the connection is closed, after `CLOSE_MAX_MS` at the latest. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    const socket = this.#socket;
    if (!socket || socket.readyState === WebSocket.CLOSED) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    socket.once("close", () => resolve());
    const timer = setTimeout(() => socket.terminate(), CLOSE_MAX_MS);
    socket.close(1000);
    await promise;
    clearTimeout(timer);
  }

  #handleMessage(text: string): void {
    if (text === RELAY_PONG) return;
    const message = ApiToRelayMessage.safeParse(parseJson(text)).data;
    if (!message) {
      // A later version of the API may send messages that this version does not know.
      this.#options.log.warn(
        "ignored a message from the API that only a newer relay knows: update the relay",
      );
      return;
    }
    if (message.type !== "welcome") return this.#options.onMessage(message);
    this.#isConnected = true;
    this.connectedAtMs = Date.now();
    this.#retryMs = LINK_RETRY_MIN_MS;
    this.#problem = "";
    this.#options.log.info("connected to the API", { api: this.#options.apiUrl });
    this.#options.onWelcome();
  }

  #handleClose(problem: string): void {
    const wasConnected = this.#isConnected;
    this.#isConnected = false;
    if (this.#isClosed) return;
    if (wasConnected || problem !== this.#problem) {
      this.#options.log.warn("not connected to the API, retrying", {
        api: this.#options.apiUrl,
        error: problem,
      });
    }
    this.#problem = problem;
    // Jitter, so that relays don't all reconnect at the same time.
    this.#retry = setTimeout(() => this.connect(), this.#retryMs * (0.5 + Math.random() / 2));
    this.#retryMs = Math.min(this.#retryMs * 2, LINK_RETRY_MAX_MS);
  }
}

const CLOSE_MAX_MS = 1_000;

/** The library for WebSockets gives the status only in its message. */
function describeError(error: Error): string {
  const message = getErrorMessage(error);
  const [, status] = /^Unexpected server response: (\d+)$/.exec(message) ?? [];
  if (status === undefined) return message;
  switch (status) {
    case "401":
      return "the API does not accept RELAY_SECRET: it must be the same as the server's";
    case "503":
      return "the API is not available now: it may be restarting (HTTP 503)";
    default:
      return `the API answers ${status} instead of opening a WebSocket: check RELAY_API_URL`;
  }
}
