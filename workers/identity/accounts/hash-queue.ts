/**
 * The password hashes that wait for their turn: one runs at a time, so that logins take the processor from visitors for
 * the time of one hash only. Each waiting request polls with its own timer, because the platform cancels all work of a
 * request whose client has left, and that must not block the others.
 */
import { ApiError } from "../../errors.ts";

/** How often a waiting request checks whether it is its turn. */
const HASH_POLL_MS = 10;
/** A request that has not polled for this long has been canceled. */
const HASH_ABANDONED_MS = 1_000;
/** A running hash that has not ended after this has been canceled, or its executor is gone. */
const HASH_RUN_MAX_MS = 5_000;
const HASHES_WAITING_MAX = 64;
export const HASHES_WAITING_PER_SOURCE_MAX = 5;
export const HASHES_WAITING_PER_ACCOUNT_MAX = 5;
const HASHES_RETRY_AFTER_SECONDS = 2;

/** The caller and the account that a password is hashed for. */
export interface HashClaim {
  /** The group of the caller's address. */
  source: string;
  /** The address of the account, or its id. */
  account: string;
}

interface HashQueueDeps {
  now: () => number;
  wait: (ms: number) => Promise<void>;
}

interface Entry extends HashClaim {
  /** From this time on the request counts as canceled, unless it polls before. */
  abandonedAtMs: number;
}

export class HashQueue {
  readonly #deps: HashQueueDeps;
  /** In order of arrival. The first one that is not abandoned runs. */
  readonly #entries = new Map<symbol, Entry>();
  #nextStartAtMs = 0;

  constructor(deps: HashQueueDeps) {
    this.#deps = deps;
  }

  /**
   * @param pauseMs from the start of this hash to the start of the next.
   * @param isLimited false: sources and accounts may wait as often as they like, within the total.
   * @throws ApiError `unavailable` when too many hashes wait already.
   */
  async run<Result>(
    claim: HashClaim,
    { pauseMs, isLimited }: { pauseMs: number; isLimited: boolean },
    hash: () => Promise<Result>,
  ): Promise<Result> {
    const { now, wait } = this.#deps;
    const self = Symbol();
    if (this.#isFull(claim, isLimited)) throw tooManyHashes();
    try {
      for (;;) {
        this.#entries.set(self, { ...claim, abandonedAtMs: now() + HASH_ABANDONED_MS });
        if (this.#isTurn(self)) break;
        await wait(HASH_POLL_MS);
      }
      this.#entries.get(self)!.abandonedAtMs = now() + HASH_RUN_MAX_MS;
      this.#nextStartAtMs = now() + pauseMs;
      return await hash();
    } finally {
      this.#entries.delete(self);
    }
  }

  #isFull({ source, account }: HashClaim, isLimited: boolean): boolean {
    this.#removeAbandoned();
    if (this.#entries.size >= HASHES_WAITING_MAX) return true;
    if (!isLimited) return false;
    const waiting = [...this.#entries.values()];
    return (
      waiting.filter((entry) => entry.source === source).length >= HASHES_WAITING_PER_SOURCE_MAX ||
      waiting.filter((entry) => entry.account === account).length >= HASHES_WAITING_PER_ACCOUNT_MAX
    );
  }

  #isTurn(self: symbol): boolean {
    this.#removeAbandoned();
    const [first] = this.#entries.keys();
    return first === self && this.#deps.now() >= this.#nextStartAtMs;
  }

  #removeAbandoned(): void {
    const nowMs = this.#deps.now();
    for (const [key, { abandonedAtMs }] of this.#entries) {
      if (nowMs > abandonedAtMs) this.#entries.delete(key);
    }
  }
}

function tooManyHashes(): ApiError {
  return new ApiError("unavailable", "Too many passwords are being checked. Try again.", {
    retryAfterSeconds: HASHES_RETRY_AFTER_SECONDS,
  });
}
