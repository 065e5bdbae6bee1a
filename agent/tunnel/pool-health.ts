/**
 * The health of an agent in a pool: whether its local server accepts connections. The tunnel sends requests to others while
 * it does not.
 */

/** How often it is checked. A request that finds no server is noticed at once. */
const CHECK_MS = 2_000;

export class PoolHealth {
  readonly #isListening: () => Promise<boolean>;
  readonly #onChange: (isHealthy: boolean) => void;
  #isHealthy = true;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  /** @param onChange is not called for the first check. */
  constructor(isListening: () => Promise<boolean>, onChange: (isHealthy: boolean) => void) {
    this.#isListening = isListening;
    this.#onChange = onChange;
  }

  get isHealthy(): boolean {
    return this.#isHealthy;
  }

  /** Resolves after the first check; further ones follow until `stop`. */
  async start(): Promise<void> {
    this.#isHealthy = await this.#isListening();
    this.#checkLater();
  }

  /** A request found no local server. */
  reportUnreachable(): void {
    this.#setHealthy(false);
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #checkLater(): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => void this.#check(), CHECK_MS);
  }

  async #check(): Promise<void> {
    const isListening = await this.#isListening();
    if (!this.#isStopped) this.#setHealthy(isListening);
    this.#checkLater();
  }

  #setHealthy(isHealthy: boolean): void {
    if (this.#isHealthy === isHealthy) return;
    this.#isHealthy = isHealthy;
    this.#onChange(isHealthy);
  }
}
