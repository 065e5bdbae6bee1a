/**
 * Limits how many requests of a tunnel are in flight, and how many of them come from one source, so that a visitor whose
 * requests get no answers does not keep others from being served.
 */
import { getAddressGroup } from "../../../shared/address-group.ts";
import type { BufferedBytes } from "../buffered-bytes.ts";
import { SourceSlots } from "../../../shared/bounds/source-slots.ts";

/**
 * The maximum for one tunnel, including requests that wait for an agent. An agent opens as many connections to its local
 * server. One source may have as many as stay free: 512 if it is alone, which is enough for the event streams and long polls
 * of 85 browsers that use all of their six connections.
 */
export const IN_FLIGHT_MAX_REQUESTS = 1_024;

export class InFlightRequests {
  readonly #buffered: BufferedBytes;
  readonly #slots = new SourceSlots(IN_FLIGHT_MAX_REQUESTS);

  constructor(buffered: BufferedBytes) {
    this.#buffered = buffered;
  }

  /**
   * @param address the visitor's.
   * @param heldBytes of the request's head and of the buffer for its body.
   * @returns null when too many requests are in flight.
   */
  enter(address: string, heldBytes: number): InFlightPlace | null {
    const source = getAddressGroup(address);
    if (!this.#buffered.hold(heldBytes)) return null;
    if (!this.#slots.take(source)) {
      this.#buffered.release(heldBytes);
      return null;
    }
    return new CountedPlace(this.#buffered, heldBytes, () => this.#slots.free(source));
  }
}

/** The place of one request. */
export interface InFlightPlace {
  /** @returns false when the tunnel may not hold as much more, for this request, until it has ended. */
  hold(bytes: number): boolean;
  /** The request has ended for both sides. Further calls change nothing. */
  leave(): void;
}

/** For WebSockets, which `VisitorSockets` limits. */
export const UNCOUNTED_PLACE: InFlightPlace = { hold: () => true, leave: () => undefined };

class CountedPlace implements InFlightPlace {
  readonly #buffered: BufferedBytes;
  readonly #onLeave: () => void;
  /** What `BufferedBytes` holds for the request, part by part. Empty when the request has left. */
  #held: number[];

  constructor(buffered: BufferedBytes, heldBytes: number, onLeave: () => void) {
    this.#buffered = buffered;
    this.#held = [heldBytes];
    this.#onLeave = onLeave;
  }

  hold(bytes: number): boolean {
    if (!this.#buffered.hold(bytes)) return false;
    this.#held.push(bytes);
    return true;
  }

  leave(): void {
    if (this.#held.length === 0) return;
    for (const bytes of this.#held) this.#buffered.release(bytes);
    this.#held = [];
    this.#onLeave();
  }
}
