/**
 * A data connection to a relay (docs/relay-protocol.md): an HTTP Upgrade, then silence until the relay gives it a
 * visitor, whose bytes follow.
 */
import { request as requestHttp, type IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";
import type { Socket } from "node:net";
import { HttpsProxyAgent } from "https-proxy-agent";
import { getProxyForUrl } from "proxy-from-env";
import { HELLO_MAX_MS } from "../../protocol/limits.ts";
import { STREAM_KEEP_ALIVE_MS } from "../../protocol/relay/limits.ts";
import { VisitorHead } from "../../protocol/relay/control.ts";
import { STREAM_UPGRADE } from "../../protocol/relay/datagrams.ts";
import { connectSocket, connectTlsSocket, setReceiver } from "../../sockets/socket-reader.ts";

/** The head that the relay writes before a visitor's first byte. */
const STREAM_HEAD_MAX_BYTES = 1_024;

/** Of the answer to the upgrade. */
const ANSWER_MAX_BYTES = 8 * 1024;
const LENGTH_BYTES = 2;

export interface RelayEndpoint {
  /** `ws://…` or `wss://…`: that of the control connection. */
  url: string;
  association: number;
  streamKey: string;
}

export interface DataConnectionEvents {
  /** The relay took it; it waits for a visitor. */
  onIdle(): void;
  /** @param socket paused @param unread the visitor's first bytes, if they came already */
  onAssigned(head: VisitorHead, socket: Socket, unread: Uint8Array): void;
  /** It ended before it was given a visitor. Nothing follows. */
  onFailed(reason: string): void;
}

export class DataConnection {
  readonly #events: DataConnectionEvents;
  #socket: Socket | undefined;
  #abandon: () => void = () => undefined;
  #pending: Uint8Array = new Uint8Array();
  #state: "upgrading" | "idle" | "done" = "upgrading";
  #timer: NodeJS.Timeout;
  readonly #broken = (error: Error): void => this.#fail(error.message);
  readonly #ended = (): void => this.#fail("the relay closed the connection");

  constructor(endpoint: RelayEndpoint, events: DataConnectionEvents) {
    this.#events = events;
    this.#timer = setTimeout(() => this.#fail("the relay does not answer"), HELLO_MAX_MS);
    const url = new URL("/stream", endpoint.url);
    const proxy = getProxyForUrl(url.href.replace(/^ws/, "http"));
    if (proxy === "") this.#connect(url, endpoint);
    else this.#connectThrough(proxy, url, endpoint);
  }

  /** Ends it, unless it was given a visitor. */
  close(): void {
    if (this.#state === "done") return;
    this.#state = "done";
    clearTimeout(this.#timer);
    this.#abandon();
    this.#socket?.destroy();
  }

  // ── Upgrading ──

  #connect(url: URL, endpoint: RelayEndpoint): void {
    const isTls = url.protocol === "wss:";
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const port = Number(url.port || (isTls ? 443 : 80));
    const socket = isTls
      ? connectTlsSocket({ host, port, servername: serverName(host), allowHalfOpen: true })
      : connectSocket({ host, port, allowHalfOpen: true });
    const lines = Object.entries(upgradeHeaders(url, endpoint)).map(([k, v]) => `${k}: ${v}\r\n`);
    socket.write(`GET ${url.pathname} HTTP/1.1\r\n${lines.join("")}\r\n`);
    this.#use(socket);
    setReceiver(socket, (bytes) => this.#read(bytes));
    socket.resume();
  }

  #connectThrough(proxy: string, url: URL, endpoint: RelayEndpoint): void {
    const request = url.protocol === "wss:" ? requestHttps : requestHttp;
    const upgrade = request(url.href.replace(/^ws/, "http"), {
      agent: new HttpsProxyAgent(proxy),
      headers: upgradeHeaders(url, endpoint),
    });
    this.#abandon = () => upgrade.destroy();
    upgrade.on("error", (error) => this.#fail(error.message));
    upgrade.on("response", (response: IncomingMessage) => {
      response.resume();
      this.#fail(`the relay answered ${response.statusCode}`);
    });
    upgrade.on("upgrade", (_response, socket: Socket, head) => {
      if (this.#state === "done") return void socket.destroy();
      socket.allowHalfOpen = true;
      this.#use(socket);
      this.#upgraded();
      setReceiver(socket, (bytes) => this.#read(bytes));
      if (head.length === 0 || this.#read(head)) socket.resume();
    });
    upgrade.end();
  }

  #use(socket: Socket): void {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, STREAM_KEEP_ALIVE_MS);
    socket.on("error", this.#broken);
    socket.on("end", this.#ended);
    socket.on("close", this.#ended);
  }

  #upgraded(): void {
    clearTimeout(this.#timer);
    this.#state = "idle";
    this.#events.onIdle();
  }

  // ── Reading ──

  /** @returns whether more is to be read. */
  #read(bytes: Uint8Array): boolean {
    if (this.#state === "done") return false;
    this.#pending = Buffer.concat([this.#pending, bytes]);
    if (this.#state === "upgrading" && !this.#readAnswer()) return this.#isWaiting;
    return this.#readHead();
  }

  get #isWaiting(): boolean {
    return (this.#state as string) !== "done";
  }

  /** @returns whether the relay has upgraded the connection. */
  #readAnswer(): boolean {
    const bytes = Buffer.from(this.#pending.buffer, this.#pending.byteOffset, this.#pending.length);
    const end = bytes.indexOf("\r\n\r\n");
    if (end < 0) {
      if (bytes.length > ANSWER_MAX_BYTES) this.#fail("what answers is not a relay");
      return false;
    }
    const [, status] = /^HTTP\/1\.1 (\d{3})[ \r]/.exec(bytes.toString("latin1", 0, end)) ?? [];
    if (status !== "101") {
      this.#fail(status ? `the relay answered ${status}` : "what answers is not a relay");
      return false;
    }
    this.#pending = bytes.subarray(end + 4);
    this.#upgraded();
    return true;
  }

  #readHead(): boolean {
    const bytes = Buffer.from(this.#pending.buffer, this.#pending.byteOffset, this.#pending.length);
    if (bytes.length < LENGTH_BYTES) return true;
    const end = LENGTH_BYTES + bytes.readUInt16BE();
    if (end > LENGTH_BYTES + STREAM_HEAD_MAX_BYTES) return this.#unreadable();
    if (bytes.length < end) return true;
    const head = parseHead(bytes.subarray(LENGTH_BYTES, end));
    if (!head) return this.#unreadable();
    this.#state = "done";
    const socket = this.#socket!;
    socket.off("error", this.#broken).off("end", this.#ended).off("close", this.#ended);
    socket.on("error", () => undefined);
    this.#events.onAssigned(head, socket.pause(), bytes.subarray(end));
    return false;
  }

  #unreadable(): false {
    this.#fail("what answers is not a relay");
    return false;
  }

  #fail(reason: string): void {
    if (this.#state === "done") return;
    this.close();
    this.#events.onFailed(reason);
  }
}

function upgradeHeaders(url: URL, { association, streamKey }: RelayEndpoint) {
  return {
    Host: url.host,
    Connection: "Upgrade",
    Upgrade: STREAM_UPGRADE,
    Authorization: `Bearer ${association}.${streamKey}`,
  };
}

/** TLS names no addresses (RFC 6066 §3). */
function serverName(host: string): string | undefined {
  return /^[\d.]+$/.test(host) || host.includes(":") ? undefined : host;
}

function parseHead(bytes: Buffer): VisitorHead | undefined {
  try {
    return VisitorHead.safeParse(JSON.parse(bytes.toString())).data;
  } catch {
    return undefined;
  }
}
