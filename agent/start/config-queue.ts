/** Configurations that are applied one after the other: of those that wait, only the latest counts. */
import type { GroupConfig } from "./tunnel-group.ts";

export class ConfigQueue {
  readonly #apply: (config: GroupConfig) => Promise<void>;
  #waiting: GroupConfig | undefined;
  #isApplying = false;

  constructor(apply: (config: GroupConfig) => Promise<void>) {
    this.#apply = apply;
  }

  /** Applies the configuration, after the one that is being applied. @throws what applying one throws. */
  async add(config: GroupConfig): Promise<void> {
    this.#waiting = config;
    if (this.#isApplying) return;
    this.#isApplying = true;
    try {
      for (let next = this.#take(); next; next = this.#take()) await this.#apply(next);
    } finally {
      this.#isApplying = false;
    }
  }

  /** The file is no longer valid: changes that have not begun are dropped. */
  dropWaiting(): void {
    this.#waiting = undefined;
  }

  #take(): GroupConfig | undefined {
    const next = this.#waiting;
    this.#waiting = undefined;
    return next;
  }
}
