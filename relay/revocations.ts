/** Tickets that the API has revoked, stored for as long as such a ticket could be used. */
import type { Revocation } from "../protocol/relay/link.ts";
import type { RelayTicket } from "../protocol/relay/ticket.ts";
import { BoundedMap } from "../shared/bounds/bounded-map.ts";

interface RevocationsOptions {
  maxEntries: number;
  maxAgeMs: number;
}

/** Whether a revocation applies to this ticket. */
export function isRevokedBy(ticket: RelayTicket, revocation: Revocation): boolean {
  const { kind, id, tokenNonce, port, untilGeneration } = revocation;
  if (id === undefined && tokenNonce === undefined) return false;
  return (
    ticket.kind === kind &&
    (id === undefined || ticket.sub === id) &&
    (tokenNonce === undefined || ticket.nonce === tokenNonce) &&
    (port === undefined || ticket.port === port) &&
    ticket.generation <= untilGeneration
  );
}

export class Revocations {
  readonly #maxAgeMs: number;
  /** By the network, tunnel, token and port that they apply to, oldest first. */
  readonly #entries: BoundedMap<string, { revocation: Revocation; addedAtMs: number }>;

  constructor({ maxEntries, maxAgeMs }: RevocationsOptions) {
    this.#maxAgeMs = maxAgeMs;
    this.#entries = new BoundedMap(maxEntries);
  }

  get size(): number {
    return this.#entries.size;
  }

  add(revocation: Revocation, now: number): void {
    const { kind, id, tokenNonce, port } = revocation;
    const key = JSON.stringify([kind, id, tokenNonce, port]);
    const earlier = this.#entries.get(key)?.revocation;
    const untilGeneration = Math.max(revocation.untilGeneration, earlier?.untilGeneration ?? 0);
    this.#entries.set(key, { revocation: { ...revocation, untilGeneration }, addedAtMs: now });
    for (const [oldest, { addedAtMs }] of this.#entries) {
      if (now - addedAtMs <= this.#maxAgeMs) break;
      this.#entries.delete(oldest);
    }
  }

  /** @returns undefined for a ticket that is not revoked. */
  find(ticket: RelayTicket): Revocation | undefined {
    for (const scope of [
      [ticket.sub, undefined, undefined],
      [undefined, ticket.nonce, undefined],
      [ticket.sub, ticket.nonce, undefined],
      [ticket.sub, undefined, ticket.port],
    ]) {
      const key = JSON.stringify([ticket.kind, ...scope]);
      const revocation = this.#entries.get(key)?.revocation;
      if (revocation && isRevokedBy(ticket, revocation)) return revocation;
    }
    return undefined;
  }
}
