/**
 * Limits how fast the handshakes of one source begin. Each takes this process half a millisecond or more, during which it
 * serves no other connection. It costs the client only a few hundred bytes, which can be the same each time.
 */
import type { Socket } from "node:net";
import { getAddressGroup } from "../../../shared/address-group.ts";
import { BoundedMap } from "../../../shared/bounds/bounded-map.ts";
import { SECOND_MS } from "../../../shared/time.ts";

/** Enough for an agent that opens a connection for each visitor of a TCP tunnel. */
const HANDSHAKES_PER_SECOND = 300;
/** How many may begin at once after a pause. */
const HANDSHAKES_BURST = 600;
/** The source whose last handshake was the earliest is forgotten first. */
const SOURCES_MAX = 16_384;

export class HandshakePace {
  readonly #intervalMs: number;
  readonly #burst: number;
  /** When the next handshake of a source may begin if none may begin sooner, in ms of `performance.now()`. */
  readonly #nextAtMs = new BoundedMap<string, number>(SOURCES_MAX);

  constructor(perSecond = HANDSHAKES_PER_SECOND, burst = HANDSHAKES_BURST) {
    this.#intervalMs = SECOND_MS / perSecond;
    this.#burst = burst;
  }

  /** @param connection paused. @param begin is called now or, unless the connection is closed before, later. */
  schedule(connection: Socket, begin: () => void): void {
    const delayMs = this.reserve(connection.remoteAddress ?? "", performance.now());
    if (delayMs === 0) return begin();
    const timer = setTimeout(() => {
      connection.off("error", ignore).off("close", cancel);
      begin();
    }, delayMs);
    const ignore = () => undefined;
    const cancel = () => clearTimeout(timer);
    connection.on("error", ignore).once("close", cancel);
  }

  /** Counts a handshake. @returns how long it has to wait. */
  reserve(address: string, nowMs: number): number {
    const source = getAddressGroup(address);
    const earliestMs = nowMs - (this.#burst - 1) * this.#intervalMs;
    const atMs = Math.max(this.#nextAtMs.get(source) ?? earliestMs, earliestMs);
    this.#nextAtMs.set(source, atMs + this.#intervalMs);
    return Math.max(0, atMs - nowMs);
  }
}
