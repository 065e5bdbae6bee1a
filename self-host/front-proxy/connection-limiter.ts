/** Counts open connections, in total and for each source, and refuses those beyond the limits. */
import { getAddressGroup } from "../../shared/address-group.ts";
import type { ConnectionLimits } from "./limits.ts";
import type { ConnectionRefusal, FrontProxyMetrics } from "./metrics/front-proxy-metrics.ts";

export class ConnectionLimiter {
  readonly #limits: ConnectionLimits;
  readonly #metrics: FrontProxyMetrics;
  readonly #openBySource = new Map<string, number>();
  #open = 0;
  /** Since the last report. */
  #refused = 0;

  /** @param limits `perSource` is Infinity when all visitors come through one proxy. */
  constructor(limits: ConnectionLimits, metrics: FrontProxyMetrics) {
    this.#limits = limits;
    this.#metrics = metrics;
  }

  /** @returns a function that ends the connection's count; undefined: the connection is one too many. */
  admitConnection(address: string): (() => void) | undefined {
    const release = this.admitStream(address);
    if (release) this.#metrics.countAcceptedConnection();
    return release;
  }

  /** The same for a further request at the same time in an HTTP/2 session, which needs as much as a connection. */
  admitStream(address: string): (() => void) | undefined {
    const source = getAddressGroup(address);
    const open = this.#openBySource.get(source) ?? 0;
    if (this.#open >= this.#limits.total) return this.#refuse("total");
    if (open >= this.#limits.perSource) return this.#refuse("source");
    this.#open += 1;
    this.#openBySource.set(source, open + 1);
    return () => this.#release(source);
  }

  #refuse(reason: ConnectionRefusal): undefined {
    this.#refused += 1;
    this.#metrics.countRefusedConnection(reason);
  }

  #release(source: string): void {
    this.#open -= 1;
    const open = this.#openBySource.get(source)! - 1;
    if (open === 0) this.#openBySource.delete(source);
    else this.#openBySource.set(source, open);
  }

  /** Logs how many connections were refused since the last call. Called every minute. */
  reportRefusals(): void {
    if (this.#refused === 0) return;
    const { total, perSource } = this.#limits;
    const perAddress = Number.isFinite(perSource)
      ? `, or by one address MAX_CONNECTIONS_PER_ADDRESS (${perSource})`
      : "";
    console.error(
      `${this.#refused} connections were answered with 503 in the last minute: MAX_CONNECTIONS (${total}) was reached` +
        `${perAddress}; raise the limit, or ulimit -n, unless this is an attack`,
    );
    this.#refused = 0;
  }
}
