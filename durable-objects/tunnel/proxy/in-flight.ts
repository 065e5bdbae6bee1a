/**
 * Limits how many requests of a tunnel are in flight, and how many of them come from one source, so that a visitor whose
 * requests get no answers does not keep others from being served.
 */
import { getAddressGroup } from "../../../shared/address-group.ts";
import type { BufferedBytes } from "../buffered-bytes.ts";
import { SourceSlots } from "../../../shared/source-slots.ts";

/**
 * Of one tunnel, those included that wait for an agent. As many as an agent opens connections to its local server. One source
 * may have as many as stay free: 512 if it is alone, which is enough for the event streams and long polls of 85 browsers
 * that use all of their six connections.
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
    return new InFlightPlace(() => {
      this.#buffered.release(heldBytes);
      this.#slots.free(source);
    });
  }
}

/** The place of one request. */
export class InFlightPlace {
  #onLeave: (() => void) | undefined;

  constructor(onLeave: () => void) {
    this.#onLeave = onLeave;
  }

  /** The request has ended for both sides. Further calls change nothing. */
  leave(): void {
    const onLeave = this.#onLeave;
    this.#onLeave = undefined;
    onLeave?.();
  }
}
