/** A holder that was garbage collected, such as an object that the platform stopped, returns nothing itself. */
const lostShares = new FinalizationRegistry((share: Share) => share.add(-share.held));

/**
 * Divides a bounded resource among holders, however many there are. A holder may hold as much as stays free: a single one
 * gets half of the total, n equal ones 1/(n+1) each, and the rest is always there for a new one.
 */
export class FairShare {
  readonly #total: number;
  #used = 0;

  constructor(total: number) {
    this.#total = total;
  }

  get used(): number {
    return this.#used;
  }

  /** A new holder, which holds nothing. It needs no removal once it holds nothing again. */
  createShare(): Share {
    return new Share(
      (amount) => (this.#used += amount),
      () => this.#total - this.#used,
    );
  }

  /** The same for a holder that may be lost: what it holds is free again when `owner` is garbage collected. */
  createShareFor(owner: object): Share {
    const share = this.createShare();
    lostShares.register(owner, share);
    return share;
  }
}

/** The part of a `FairShare` that one holder holds. */
export class Share {
  readonly #use: (amount: number) => void;
  readonly #countFree: () => number;
  #held = 0;

  constructor(use: (amount: number) => void, countFree: () => number) {
    this.#use = use;
    this.#countFree = countFree;
  }

  get held(): number {
    return this.#held;
  }

  /** Whether this holder has no claim to more. */
  get isFull(): boolean {
    return this.#held >= this.#countFree();
  }

  /** Whether the holder has a claim to this much more. */
  hasRoom(amount: number): boolean {
    return this.#held + amount <= this.#countFree() - amount;
  }

  /** @returns false when the holder has no claim to this much more; then it holds what it held before. */
  take(amount: number): boolean {
    if (!this.hasRoom(amount)) return false;
    this.add(amount);
    return true;
  }

  /** Takes or, if negative, returns an amount that has been used already, even beyond the holder's claim. */
  add(amount: number): void {
    this.#held += amount;
    this.#use(amount);
  }
}
