/**
 * One tunnel as the agent keeps it: connects, reconnects for ever, and gives each connection's requests to
 * the local server. Only a rejection that no retry can change ends it.
 */
import { EventEmitter } from "node:events";
import { CLOSE, closeNameOf, mayReconnect } from "../protocol/close-codes.ts";
import type { Welcome } from "../protocol/frames.ts";
import {
  DRAIN_MAX_MS,
  RECONNECT_MAX_MS,
  RECONNECT_MIN_MS,
  STOPPED_RETRY_MAX_MS,
  STOPPED_RETRY_MIN_MS,
} from "../protocol/limits.ts";
import { ENDED_RETRY_MAX_MS, ENDED_RETRY_MIN_MS } from "../protocol/limits/organization.ts";
import { openStream } from "./origin/open-stream.ts";
import { Origin, type FinishedRequest } from "./origin/origin.ts";
import type { HostMode } from "./host-header.ts";
import type { Target } from "./target.ts";
import { Wire } from "./wire.ts";

export interface TunnelOptions {
  target: Target;
  server: URL;
  token: Buffer;
  hostMode: HostMode;
  insecureUpstream: boolean;
  subdomain: string | undefined;
  project: string | undefined;
  ttlSeconds: number | undefined;
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

interface TunnelEventMap {
  ready: [welcome: Welcome];
  reconnected: [welcome: Welcome];
  disconnected: [reason: string];
  /** A connection could not be made; another try follows. */
  retrying: [reason: string, inMs: number];
  /** Its owner stopped the tunnel: the agent waits until it is started again. */
  stopped: [explanation: string];
  rejected: [rejection: Rejected];
  request: [request: FinishedRequest];
  notice: [message: string];
}

export class AgentTunnel extends EventEmitter<TunnelEventMap> {
  readonly #options: TunnelOptions;
  readonly #origin: Origin;
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

  constructor(options: TunnelOptions) {
    super();
    this.#options = options;
    this.#name = options.subdomain;
    this.#origin = new Origin(options.target, options, {
      finished: (request) => this.emit("request", request),
      told: (message) => this.emit("notice", message),
    });
  }

  get origin(): Origin {
    return this.#origin;
  }

  /** What the server said of the tunnel; undefined before the first connection. */
  get welcome(): Welcome | undefined {
    return this.#welcome;
  }

  start(): void {
    this.#connect();
  }

  /** Ends the tunnel cleanly: what is in flight may finish, up to `DRAIN_MAX_MS`. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#retry);
    const wire = this.#wire;
    if (wire) {
      await streamsDone(wire);
      wire.leave("the agent was stopped");
    }
    await this.#origin.close();
  }

  #connect(): void {
    const url = connectUrl(this.#options, this.#name, this.#welcome?.tunnelId);
    const wire = new Wire(url, this.#options.token, {
      welcome: (welcome) => this.#welcomed(welcome),
      request: (from, id, head, flags) =>
        from === this.#leaving ? null : openStream(this.#origin, from, id, head, flags),
      goingAway: (reason) => this.#serverLeaves(reason),
      closed: (code, reason) => this.#connectionClosed(wire, code, reason),
    });
    this.#wire = wire;
  }

  #welcomed(welcome: Welcome): void {
    const isFirst = this.#welcome === undefined;
    this.#welcome = welcome;
    this.#name = welcome.name;
    this.#origin.publicOrigin = new URL(welcome.url).origin;
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
    if (!mayReconnect(code)) return this.#reject(code, explanation);
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
    void this.#origin.close();
    const name = closeNameOf(code) ?? String(code);
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
  const prefix = `${closeNameOf(code)}: `;
  return explanation.startsWith(prefix) ? explanation.slice(prefix.length) : explanation;
}

/** @param tunnelId of the tunnel that comes back: one that is over must not be made anew. */
function connectUrl(
  options: TunnelOptions,
  name: string | undefined,
  tunnelId: string | undefined,
): URL {
  const url = new URL("/agent/connect", options.server);
  url.protocol = options.server.protocol === "https:" ? "wss:" : "ws:";
  url.searchParams.set("protocol", options.target.scheme);
  url.searchParams.set("port", String(options.target.port));
  if (name !== undefined) url.searchParams.set("subdomain", name);
  if (tunnelId !== undefined) url.searchParams.set("tunnel", tunnelId);
  if (options.project !== undefined) url.searchParams.set("project", options.project);
  if (options.ttlSeconds !== undefined) url.searchParams.set("ttl", String(options.ttlSeconds));
  return url;
}

function reasonOf(code: number): string {
  return code === 1006 ? "the connection was lost" : `the connection was closed (${code})`;
}
