/**
 * A data connection to a relay (docs/protocols/relay-protocol.md): an HTTP Upgrade, then nothing until the relay
 * assigns it a visitor, whose bytes follow.
 */
import type { Socket } from "node:net";
import { HELLO_TIMEOUT_MS } from "../../protocol/limits.ts";
import { DATA_CONNECTION_KEEP_ALIVE_MS } from "../../protocol/relay/limits.ts";
import { VisitorHead } from "../../protocol/relay/control.ts";
import { DATA_CONNECTION_UPGRADE } from "../../protocol/relay/datagrams.ts";
import { DATA_PATH, toRelayUrl } from "../../protocol/relay/paths.ts";
import { parseJson } from "../../shared/json.ts";
import { connectSocket, connectTlsSocket, setReceiver } from "../../sockets/socket-reader.ts";
import { explainError } from "../error-message.ts";
import { getHost, getPort } from "../outgoing/address.ts";
import { isProxied } from "../outgoing/proxy.ts";
import { findServerName, openProxySocket } from "../outgoing/proxy-socket.ts";
import type { TrustedAuthorities } from "../outgoing/trusted-authorities.ts";

/** The head that the relay sends before a visitor's first byte. */
const STREAM_HEAD_MAX_BYTES = 1_024;

/** The response to the upgrade. */
const RESPONSE_MAX_BYTES = 8 * 1024;
const LENGTH_BYTES = 2;
const NOT_A_RELAY = "the server at the relay's address is not an Underpass relay";

export interface RelayEndpoint {
  /** `ws://…` or `wss://…`: the same as the control connection's. */
  url: string;
  authorities: TrustedAuthorities | undefined;
  association: number;
  streamKey: string;
}

interface DataConnectionEvents {
  /** The relay accepted the connection, which waits for a visitor. */
  onIdle(): void;
  /** @param socket is paused. @param unread the visitor's first bytes, if they were received with the head. */
  onAssigned(head: VisitorHead, socket: Socket, unread: Uint8Array): void;
  /** The connection ended before it was assigned a visitor. No other event follows. */
  onFailed(reason: string): void;
}

export class DataConnection {
  readonly #events: DataConnectionEvents;
  #socket: Socket | undefined;
  readonly #abort = new AbortController();
  #pending: Buffer = Buffer.alloc(0);
  #state: "upgrading" | "idle" | "done" = "upgrading";
  #timer: NodeJS.Timeout;
  readonly #onError = (error: Error): void => this.#fail(explainError(error));
  readonly #onEnd = (): void => this.#fail("the relay closed the connection");

  constructor(endpoint: RelayEndpoint, events: DataConnectionEvents) {
    this.#events = events;
    this.#timer = setTimeout(
      () => this.#fail("the relay did not answer in time"),
      HELLO_TIMEOUT_MS,
    );
    const url = toRelayUrl(endpoint.url, DATA_PATH);
    if (isProxied(url)) void this.#connectThroughProxy(url, endpoint);
    else this.#start(connectDirectly(url, endpoint.authorities), url, endpoint);
  }

  /** Closes the connection, unless it was assigned a visitor. */
  close(): void {
    if (this.#state === "done") return;
    this.#state = "done";
    clearTimeout(this.#timer);
    this.#abort.abort();
    this.#socket?.destroy();
  }

  // ── Upgrading ──

  async #connectThroughProxy(url: URL, endpoint: RelayEndpoint): Promise<void> {
    let socket: Socket;
    try {
      socket = await openProxySocket(url, endpoint.authorities, this.#abort.signal);
    } catch (error) {
      return this.#fail(explainError(error));
    }
    if (this.#state === "done") return void socket.destroy();
    socket.allowHalfOpen = true;
    this.#start(socket, url, endpoint);
  }

  #start(socket: Socket, url: URL, endpoint: RelayEndpoint): void {
    const lines = Object.entries(buildHeaders(url, endpoint)).map(([k, v]) => `${k}: ${v}\r\n`);
    socket.write(`GET ${url.pathname} HTTP/1.1\r\n${lines.join("")}\r\n`);
    this.#attach(socket);
    setReceiver(socket, (bytes) => this.#read(bytes));
    socket.resume();
  }

  #attach(socket: Socket): void {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, DATA_CONNECTION_KEEP_ALIVE_MS);
    socket.on("error", this.#onError);
    socket.on("end", this.#onEnd);
    socket.on("close", this.#onEnd);
  }

  #handleUpgrade(): void {
    clearTimeout(this.#timer);
    this.#state = "idle";
    this.#events.onIdle();
  }

  // ── Reading ──

  /** @returns whether to read on. */
  #read(bytes: Uint8Array): boolean {
    if (this.#state === "done") return false;
    this.#pending = Buffer.concat([this.#pending, bytes]);
    if (this.#state === "upgrading" && !this.#readResponse()) return !this.#isDone;
    return this.#readHead();
  }

  /** The compiler does not see that a called method may have changed the state. */
  get #isDone(): boolean {
    return (this.#state as string) === "done";
  }

  /** @returns whether the relay has upgraded the connection. */
  #readResponse(): boolean {
    const bytes = this.#pending;
    const end = bytes.indexOf("\r\n\r\n");
    if (end < 0) {
      if (bytes.length > RESPONSE_MAX_BYTES) this.#fail(NOT_A_RELAY);
      return false;
    }
    const [, status] = /^HTTP\/1\.1 (\d{3})[ \r]/.exec(bytes.toString("latin1", 0, end)) ?? [];
    if (status !== "101") {
      this.#fail(status ? `the relay answered ${status}` : NOT_A_RELAY);
      return false;
    }
    this.#pending = bytes.subarray(end + 4);
    this.#handleUpgrade();
    return true;
  }

  #readHead(): boolean {
    const bytes = this.#pending;
    if (bytes.length < LENGTH_BYTES) return true;
    const end = LENGTH_BYTES + bytes.readUInt16BE();
    if (end > LENGTH_BYTES + STREAM_HEAD_MAX_BYTES) return this.#rejectUnreadable();
    if (bytes.length < end) return true;
    const head = parseHead(bytes.subarray(LENGTH_BYTES, end));
    if (!head) return this.#rejectUnreadable();
    this.#state = "done";
    const socket = this.#socket!;
    socket.off("error", this.#onError).off("end", this.#onEnd).off("close", this.#onEnd);
    socket.on("error", () => undefined);
    this.#events.onAssigned(head, socket.pause(), bytes.subarray(end));
    return false;
  }

  #rejectUnreadable(): false {
    this.#fail(NOT_A_RELAY);
    return false;
  }

  #fail(reason: string): void {
    if (this.#state === "done") return;
    this.close();
    this.#events.onFailed(reason);
  }
}

function connectDirectly(url: URL, authorities: TrustedAuthorities | undefined): Socket {
  const host = getHost(url);
  const target = { host, port: getPort(url), allowHalfOpen: true } as const;
  if (url.protocol !== "wss:") return connectSocket(target);
  return connectTlsSocket({
    ...target,
    servername: findServerName(host),
    ...(authorities && { secureContext: authorities.secureContext }),
  });
}

function buildHeaders(url: URL, { association, streamKey }: RelayEndpoint) {
  return {
    Host: url.host,
    Connection: "Upgrade",
    Upgrade: DATA_CONNECTION_UPGRADE,
    Authorization: `Bearer ${association}.${streamKey}`,
  };
}

function parseHead(bytes: Buffer): VisitorHead | undefined {
  return VisitorHead.safeParse(parseJson(bytes.toString())).data;
}
