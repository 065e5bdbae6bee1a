/**
 * The limits of TCP tunnels: of each one's rate, and of the connections of its visitors. They belong to the tunnel, not to one
 * association with its agent: connections continue when the agent reconnects, and those of the next association share the limits.
 */
import { RatePacer } from "../../sockets/rate-pacer.ts";
import { SECOND_MS } from "../../shared/time.ts";
import { SourceLimiter } from "./source-limiter.ts";

const VISITORS_PER_TUNNEL_MAX = 2_048;
/** Visitors of one address (IPv6: of one /64) at a tunnel at a time. */
const VISITORS_PER_SOURCE_MAX = 1_536;
/** New connections of one address at a tunnel: a burst, then a number a second. */
const VISITORS_PER_SOURCE_BURST = 1_536;
const VISITORS_PER_SOURCE_PER_SECOND = 256;
/** Addresses whose connections a tunnel counts; beyond that, the least recently seen is forgotten. */
const COUNTED_SOURCES_MAX = 4_096;
/** After this time without a connection every burst is available again, so that the limits are the same as new ones. */
export const UNUSED_LIMITS_RETENTION_MS =
  (VISITORS_PER_SOURCE_BURST / VISITORS_PER_SOURCE_PER_SECOND) * SECOND_MS;

export interface VisitorLimits {
  connectionsMax: number;
  connectionsPerSourceMax: number;
  sourceBurst: number;
  sourcePerSecond: number;
  sourcesMax: number;
}

const DEFAULT_LIMITS: VisitorLimits = {
  connectionsMax: VISITORS_PER_TUNNEL_MAX,
  connectionsPerSourceMax: VISITORS_PER_SOURCE_MAX,
  sourceBurst: VISITORS_PER_SOURCE_BURST,
  sourcePerSecond: VISITORS_PER_SOURCE_PER_SECOND,
  sourcesMax: COUNTED_SOURCES_MAX,
};

export class TunnelLimits {
  /** The rate of the bytes that visitors send, and of those that the agent sends. */
  readonly pacers: { fromFirst: RatePacer; fromSecond: RatePacer };
  readonly #sources: SourceLimiter;
  readonly #connectionsMax: number;
  /** Ports of associations that accept visitors. */
  #ports = 0;
  /** Visitors whose connection is open, of all associations. */
  #openConnections = 0;

  /** @param mbps megabits (10^6 bits) a second, in each direction. @param limits default: `DEFAULT_LIMITS`. */
  constructor(mbps: number, limits: Partial<VisitorLimits> = {}) {
    const visitors = { ...DEFAULT_LIMITS, ...limits };
    this.pacers = { fromFirst: new RatePacer(mbps), fromSecond: new RatePacer(mbps) };
    this.#connectionsMax = visitors.connectionsMax;
    this.#sources = new SourceLimiter({
      connectionsMax: visitors.connectionsPerSourceMax,
      burst: visitors.sourceBurst,
      perSecond: visitors.sourcePerSecond,
      sourcesMax: visitors.sourcesMax,
    });
  }

  /** Whether a port of the tunnel accepts visitors, or a visitor's connection is open. */
  get isUsed(): boolean {
    return this.#ports > 0 || this.#openConnections > 0;
  }

  /** @param mbps megabits a second, in each direction, over all connections of the tunnel. */
  setRate(mbps: number): void {
    this.pacers.fromFirst.setRate(mbps);
    this.pacers.fromSecond.setRate(mbps);
  }

  /** A port accepts visitors from now on. Call `detachPort` once when it no longer does. */
  attachPort(): void {
    this.#ports += 1;
  }

  detachPort(): void {
    this.#ports -= 1;
  }

  /**
   * Counts a visitor unless it is refused. Call `release` once when it is no longer connected.
   * @param nowMs by the steady clock.
   */
  admit(address: string, nowMs: number): "tunnel_limit" | "source_limit" | null {
    if (this.#openConnections >= this.#connectionsMax) return "tunnel_limit";
    if (!this.#sources.admit(address, nowMs)) return "source_limit";
    this.#openConnections += 1;
    return null;
  }

  release(address: string): void {
    this.#openConnections -= 1;
    this.#sources.release(address);
  }
}

interface Entry {
  limits: TunnelLimits;
  /** In milliseconds since the epoch, as `sweep` has noticed it; null while they are used. */
  unusedSinceMs: number | null;
}

/** The limits of all tunnels that have an association or an open connection, or had one a few seconds ago. */
export class LimitsByTunnel {
  readonly #entries = new Map<string, Entry>();

  get size(): number {
    return this.#entries.size;
  }

  /** @returns those of the earlier associations, with this rate from now on. @param mbps that of the latest ticket. */
  getOrCreate(tunnelId: string, mbps: number): TunnelLimits {
    const limits = this.#entries.get(tunnelId)?.limits ?? new TunnelLimits(mbps);
    limits.setRate(mbps);
    this.#entries.set(tunnelId, { limits, unusedSinceMs: null });
    return limits;
  }

  /** Drops those that are the same as new ones. @param nowMs milliseconds since the epoch. */
  sweep(nowMs: number): void {
    for (const [tunnelId, entry] of this.#entries) {
      if (entry.limits.isUsed) entry.unusedSinceMs = null;
      else entry.unusedSinceMs ??= nowMs;
      if (entry.unusedSinceMs === null) continue;
      if (nowMs - entry.unusedSinceMs >= UNUSED_LIMITS_RETENTION_MS) this.#entries.delete(tunnelId);
    }
  }
}
