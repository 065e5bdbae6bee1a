/** Counts open connections, in total and for each source, and refuses those beyond the limits. */
import { getAddressGroup } from "../../shared/address-group.ts";
import type { ConnectionLimits } from "./limits.ts";
import type { ConnectionRefusal } from "./metrics/front-proxy-metrics.ts";

export class Admission {
  readonly #limits: ConnectionLimits;
  readonly #openBySource = new Map<string, number>();
  #open = 0;

  /** @param limits `perSource` is Infinity when all visitors come through one proxy. */
  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** @returns a function that ends the connection's count, or which limit refuses the connection. */
  admit(address: string): (() => void) | ConnectionRefusal {
    const source = getAddressGroup(address);
    const open = this.#openBySource.get(source) ?? 0;
    if (this.#open >= this.#limits.total) return "total";
    if (open >= this.#limits.perSource) return "source";
    this.#open += 1;
    this.#openBySource.set(source, open + 1);
    return () => this.#release(source);
  }

  #release(source: string): void {
    this.#open -= 1;
    const open = this.#openBySource.get(source)! - 1;
    if (open === 0) this.#openBySource.delete(source);
    else this.#openBySource.set(source, open);
  }
}
