/**
 * The agent's connection to its tunnel: made, lost, made again for ever. Only a rejection that no retry can
 * change ends it. What the tunnel's streams do is up to the kind of tunnel.
 */
import { EventEmitter } from "node:events";
import { CLOSE, findCloseName, shouldReconnect } from "../protocol/wire/close-codes.ts";
import type { Welcome } from "../protocol/wire/frames.ts";
import { DRAIN_MAX_MS, RECONNECT_MAX_MS } from "../protocol/limits.ts";
import { Wire, type StreamOpener } from "./wire.ts";

export const RECONNECT_MIN_MS = 500;
/** How often the agent of a stopped tunnel asks whether it was started again. */
export const STOPPED_RETRY_MIN_MS = 4_000;
export const STOPPED_RETRY_MAX_MS = 6_000;
/** When an agent comes back whose connection somebody ended. */
export const ENDED_RETRY_MIN_MS = 4_500;
const ENDED_RETRY_MAX_MS = 5_500;

export interface ConnectionOptions {
  server: URL;
  token: Buffer;
  subdomain: string | undefined;
  project: string | undefined;
  ttlSeconds: number | undefined;
  /** Further parameters of the query, by their names. */
  query: Record<string, string>;
  /** The same, said at the first connection only. */
  firstQuery?: Record<string, string>;
  /** Of the agent's hello. */
  capabilities: string[];
  open: StreamOpener;
}

/** The tunnel will not be served, and why: the name of a close code, and a sentence. */
export class Rejected extends Error {
  override name = "Rejected";
  readonly reason: string;

  constructor(reason: string, explanation: string) {
    super(explanation);
    this.reason = reason;
  }
}

export interface ConnectionEventMap {
  ready: [welcome: Welcome];
  reconnected: [welcome: Welcome];
  disconnected: [reason: string];
  /** A connection could not be made; another try follows. */
  retrying: [reason: string, inMs: number];
  /** Its owner stopped the tunnel: the agent waits until it is started again. */
  stopped: [explanation: string];
  rejected: [rejection: Rejected];
}

export class TunnelConnection extends EventEmitter<ConnectionEventMap> {
  readonly #options: ConnectionOptions;
  /** What to ask for: the name that was chosen, then the one that was given. */
  #name: string | undefined;
  #wire: Wire | undefined;
  /** A connection that the server asked to end, while its last requests finish. */
  #leaving: Wire | undefined;
  #welcome: Welcome | undefined;
  #failures = 0;
  #retry: NodeJS.Timeout | undefined;
  #isUp = false;
  #isStopped = false;
  #closed = false;

  constructor(options: ConnectionOptions) {
    super();
    this.#options = options;
    this.#name = options.subdomain;
  }

  /** What the server said of the tunnel; undefined before the first connection. */
  get welcome(): Welcome | undefined {
    return this.#welcome;
  }

  start(): void {
    this.#connect();
  }

  /** Ends the connection cleanly: what is in flight may finish, up to `DRAIN_MAX_MS`. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#retry);
    const wire = this.#wire;
    if (wire) {
      await streamsDone(wire);
      wire.leave("the agent was stopped");
    }
  }

  #connect(): void {
    const url = connectUrl(this.#options, this.#name, this.#welcome?.tunnelId);
    const { token, capabilities, open } = this.#options;
    const wire = new Wire(url, token, capabilities, {
      welcome: (welcome) => this.#welcomed(welcome),
      open: (from, id, opening) => (from === this.#leaving ? null : open(from, id, opening)),
      goingAway: (reason) => this.#serverLeaves(reason),
      closed: (code, reason) => this.#connectionClosed(wire, code, reason),
    });
    this.#wire = wire;
  }

  #welcomed(welcome: Welcome): void {
    const isFirst = this.#welcome === undefined;
    this.#welcome = welcome;
    this.#name = welcome.name;
    this.#failures = 0;
    this.#isUp = true;
    this.#isStopped = false;
    this.emit(isFirst ? "ready" : "reconnected", welcome);
  }

  /** The server restarts. Its last requests finish on the old connection, which then ends by itself. */
  #serverLeaves(reason: string): void {
    const wire = this.#wire;
    if (!wire || this.#closed) return;
    this.#leaving = wire;
    void streamsDone(wire).then(() => wire.close(reason));
  }

  #connectionClosed(wire: Wire, code: number, reason: string): void {
    if (wire !== this.#wire) return;
    this.#wire = undefined;
    this.#leaving = undefined;
    if (this.#closed) return;
    const explanation = reason === "" ? reasonOf(code) : reason;
    if (!shouldReconnect(code)) return this.#reject(code, explanation);
    if (code === CLOSE.tunnel_stopped) return this.#waitForStart(explanation);
    if (this.#isUp) this.emit("disconnected", explanation);
    this.#isUp = false;
    this.#isStopped = false;
    const inMs = retryDelay(code, this.#failures);
    this.#failures += 1;
    if (this.#failures > 1) this.emit("retrying", explanation, inMs);
    this.#retry = setTimeout(() => this.#connect(), inMs);
  }

  /** Told once, however often it asks. */
  #waitForStart(explanation: string): void {
    if (!this.#isStopped) this.emit("stopped", sentenceOf(CLOSE.tunnel_stopped, explanation));
    this.#isStopped = true;
    this.#isUp = false;
    this.#failures = 0;
    this.#retry = setTimeout(() => this.#connect(), retryDelay(CLOSE.tunnel_stopped, 0));
  }

  #reject(code: number, explanation: string): void {
    this.#closed = true;
    const name = findCloseName(code) ?? String(code);
    this.emit("rejected", new Rejected(name, sentenceOf(code, explanation)));
  }
}

/** Doubles from half a second to five, with jitter, so that a thousand agents do not come at once. */
export function backOff(failures: number, random: () => number = Math.random): number {
  const ceiling = Math.min(RECONNECT_MAX_MS, RECONNECT_MIN_MS * 2 ** Math.min(failures + 1, 10));
  return RECONNECT_MIN_MS + random() * (ceiling - RECONNECT_MIN_MS);
}

/** @returns in how many milliseconds to connect again after a connection was closed with `code`. */
export function retryDelay(code: number, failures: number): number {
  switch (code) {
    case CLOSE.connection_ended:
      // Whoever ended the connection sees for some seconds that it is gone.
      return randomBetween(ENDED_RETRY_MIN_MS, ENDED_RETRY_MAX_MS);
    case CLOSE.tunnel_stopped:
      return randomBetween(STOPPED_RETRY_MIN_MS, STOPPED_RETRY_MAX_MS);
    default:
      return backOff(failures);
  }
}

function randomBetween(min: number, max: number): number {
  return min + Math.random() * (max - min);
}

async function streamsDone(wire: Wire): Promise<void> {
  const until = Date.now() + DRAIN_MAX_MS;
  while (wire.endingStreams > 0 && Date.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Of a Close's reason, what follows the name of its code. */
function sentenceOf(code: number, explanation: string): string {
  const prefix = `${findCloseName(code)}: `;
  return explanation.startsWith(prefix) ? explanation.slice(prefix.length) : explanation;
}

/** @param tunnelId of the tunnel that comes back: one that is over must not be made anew. */
function connectUrl(
  options: ConnectionOptions,
  name: string | undefined,
  tunnelId: string | undefined,
): URL {
  const url = new URL("/agent/connect", options.server);
  url.protocol = options.server.protocol === "https:" ? "wss:" : "ws:";
  const isFirst = tunnelId === undefined;
  const query = { ...options.query, ...(isFirst ? options.firstQuery : {}) };
  for (const [parameter, value] of Object.entries(query)) url.searchParams.set(parameter, value);
  if (name !== undefined) url.searchParams.set("subdomain", name);
  if (!isFirst) url.searchParams.set("tunnel", tunnelId);
  if (options.project !== undefined) url.searchParams.set("project", options.project);
  if (options.ttlSeconds !== undefined) url.searchParams.set("ttl", String(options.ttlSeconds));
  return url;
}

function reasonOf(code: number): string {
  return code === 1006 ? "the connection was lost" : `the connection was closed (${code})`;
}
