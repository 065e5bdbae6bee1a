/**
 * The passwords that visitors send. A new one costs an Argon2 hash, which is slow by design. Hashes run one at
 * a time with pauses in between, sources of wrong passwords are slowed down, and a correct password is cached,
 * so that it costs one hash instead of one for each request.
 *
 * Each waiting request polls for its turn with its own timer. So a request that the platform cancels because
 * its visitor disconnected does not block the others.
 */
import { getAddressGroup } from "../../shared/address-group.ts";
import { takeFromBucket, type TokenBucket } from "../../shared/bounds/token-bucket.ts";
import type { PasswordVerdict, AccessRequest } from "../access-request.ts";
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";
import { equalInConstantTime } from "../../shared/constant-time.ts";
import { computeKeyedHash } from "./keyed-hash.ts";
import { isPasswordTooLong } from "./password-hash.ts";
import type { BasicAuth } from "../settings.ts";
import { fromBase64 } from "../../shared/bytes.ts";
import { isAhead, isRecent } from "../../shared/time.ts";

/** A longer `Authorization` header is treated as a wrong password. */
const BASIC_CREDENTIALS_MAX_CHARS = 4_096;
/** Between the starts of two Argon2 hashes for visitors in one isolate: other requests run in between. */
export const PASSWORD_CHECK_INTERVAL_MS = 100;
/** How often a waiting request checks whether it is its turn. */
export const PASSWORD_CHECK_POLL_MS = 10;
/** A request that has not polled for this long has been canceled. */
export const PASSWORD_CHECK_ABANDONED_MS = 1_000;
/** Passwords that wait to be hashed: in an isolate, for one tunnel, and of one source, whichever tunnels it visits. */
const PASSWORD_CHECKS_MAX = 32;
export const PASSWORD_CHECKS_MAX_PER_TUNNEL = 8;
export const PASSWORD_CHECKS_MAX_PER_SOURCE = 8;
/** Wrong passwords from one source address for one tunnel: a burst, then one for each interval. */
export const WRONG_PASSWORD_BURST = 5;
export const WRONG_PASSWORD_REFILL_MS = 12_000;
/** Sizes of the caches: correct passwords, wrong ones, and sources of wrong ones. */
const CORRECT_PASSWORDS_MAX = 10_000;
const WRONG_PASSWORDS_MAX = 1_000;
const WRONG_PASSWORD_ADDRESSES_MAX = 10_000;

const PASSWORD_ATTEMPT_LIMIT = { burst: WRONG_PASSWORD_BURST, refillMs: WRONG_PASSWORD_REFILL_MS };

type PasswordRequest = Pick<AccessRequest, "authorization" | "address">;

interface PasswordDeps {
  /** Argon2: slow, and it blocks the isolate. */
  verify(hash: string, password: string): Promise<boolean>;
  now(): number;
  wait(ms: number): Promise<void>;
}

/** One password that waits for its hash, however many requests sent it. */
interface QueueEntry {
  /** Identifies the tunnel: no two hashes have the same salt. */
  passwordHash: string;
  /** The group of the address that sent it first. */
  source: string;
  /** The request that computes the hash when it is this entry's turn. */
  owner: symbol;
  polledAtMs: number;
}

export class PasswordAuthenticator {
  readonly #deps: PasswordDeps;
  /** By the keyed hash of the credentials and the password hash that they were compared with. */
  readonly #correct = new BoundedMap<string, true>(CORRECT_PASSWORDS_MAX);
  readonly #wrong = new BoundedMap<string, true>(WRONG_PASSWORDS_MAX);
  readonly #wrongBySource = new BoundedMap<string, TokenBucket>(WRONG_PASSWORD_ADDRESSES_MAX);
  /** In order of arrival. */
  readonly #queue = new Map<string, QueueEntry>();
  #nextHashAtMs = 0;

  constructor(deps: PasswordDeps) {
    this.#deps = deps;
  }

  async check(
    auth: BasicAuth,
    { authorization, address }: PasswordRequest,
  ): Promise<PasswordVerdict> {
    const credentials = authorization === null ? null : parseBasicCredentials(authorization);
    if (credentials === null) return "wrong";
    const key = await computeKeyedHash(`${auth.passwordHash}\n${auth.username}\n${authorization}`);
    return this.#getRemembered(key) ?? this.#decide(key, auth, credentials, address);
  }

  #getRemembered(key: string): "correct" | "wrong" | undefined {
    if (this.#correct.has(key)) return "correct";
    return this.#wrong.has(key) ? "wrong" : undefined;
  }

  async #decide(
    key: string,
    auth: BasicAuth,
    credentials: Credentials,
    address: string,
  ): Promise<PasswordVerdict> {
    const deps = this.#deps;
    const self = Symbol();
    const source = getAddressGroup(address);
    for (;;) {
      const refusal = this.#joinQueue(key, auth, self, source);
      if (refusal) return refusal;
      if (this.#isTurn(key, self)) {
        this.#nextHashAtMs = deps.now() + PASSWORD_CHECK_INTERVAL_MS;
        const isUsername = equalInConstantTime(credentials.username, auth.username);
        // In this order, so that a wrong username takes as long as a wrong password.
        const isCorrect =
          (await deps.verify(auth.passwordHash, credentials.password)) && isUsername;
        this.#remember(key, isCorrect, toAttemptKey(auth, source));
      } else {
        await deps.wait(PASSWORD_CHECK_POLL_MS);
      }
      const remembered = this.#getRemembered(key);
      if (remembered) return remembered;
    }
  }

  /** Joins the queue, stays in it, or shares the entry of another request with the same credentials. */
  #joinQueue(
    key: string,
    auth: BasicAuth,
    self: symbol,
    source: string,
  ): PasswordVerdict | undefined {
    const nowMs = this.#deps.now();
    const { passwordHash } = auth;
    const entry = this.#queue.get(key);
    if (entry && (entry.owner === self || !isAbandoned(entry, nowMs))) {
      if (entry.owner === self) entry.polledAtMs = nowMs;
      return undefined;
    }
    if (!entry && this.#isFull(passwordHash, source, nowMs)) {
      return { busyForMs: PASSWORD_CHECK_INTERVAL_MS * PASSWORD_CHECKS_MAX_PER_TUNNEL };
    }
    // Charged before hashing, so that concurrent guesses are limited too.
    const attemptKey = toAttemptKey(auth, source);
    const { bucket, waitMs } = takeFromBucket(
      this.#wrongBySource.get(attemptKey),
      PASSWORD_ATTEMPT_LIMIT,
      nowMs,
    );
    this.#wrongBySource.set(attemptKey, bucket);
    if (waitMs > 0) return { tooManyWrongForMs: waitMs };
    this.#queue.set(key, { passwordHash, source, owner: self, polledAtMs: nowMs });
    return undefined;
  }

  #isFull(passwordHash: string, source: string, nowMs: number): boolean {
    let tunnelEntries = 0;
    let sourceEntries = 0;
    for (const [key, entry] of this.#queue) {
      if (isAbandoned(entry, nowMs)) {
        this.#queue.delete(key);
        continue;
      }
      if (entry.passwordHash === passwordHash) tunnelEntries += 1;
      if (entry.source === source) sourceEntries += 1;
    }
    return (
      tunnelEntries >= PASSWORD_CHECKS_MAX_PER_TUNNEL ||
      sourceEntries >= PASSWORD_CHECKS_MAX_PER_SOURCE ||
      this.#queue.size >= PASSWORD_CHECKS_MAX
    );
  }

  #isTurn(key: string, self: symbol): boolean {
    const nowMs = this.#deps.now();
    if (isAhead(this.#nextHashAtMs, PASSWORD_CHECK_INTERVAL_MS, nowMs)) return false;
    if (this.#queue.get(key)?.owner !== self) return false;
    for (const [other, entry] of this.#queue) if (!isAbandoned(entry, nowMs)) return other === key;
    return false;
  }

  #remember(key: string, isCorrect: boolean, attemptKey: string): void {
    this.#queue.delete(key);
    if (!isCorrect) return void this.#wrong.set(key, true);
    this.#correct.set(key, true);
    const bucket = this.#wrongBySource.get(attemptKey);
    if (bucket) bucket.tokens = Math.min(WRONG_PASSWORD_BURST, bucket.tokens + 1);
  }
}

/** Wrong passwords are counted for each tunnel and source. */
function toAttemptKey({ passwordHash }: BasicAuth, source: string): string {
  return `${passwordHash} ${source}`;
}

function isAbandoned({ polledAtMs }: QueueEntry, nowMs: number): boolean {
  return !isRecent(polledAtMs, PASSWORD_CHECK_ABANDONED_MS, nowMs);
}

interface Credentials {
  username: string;
  password: string;
}

/** @returns null when the header is not a well-formed `Basic` credential (RFC 7617). */
export function parseBasicCredentials(authorization: string): Credentials | null {
  if (authorization.length > BASIC_CREDENTIALS_MAX_CHARS) return null;
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization)?.[1];
  const bytes = encoded === undefined ? null : fromBase64(encoded);
  if (!bytes) return null;
  const text = new TextDecoder().decode(bytes);
  const colon = text.indexOf(":");
  if (colon < 0) return null;
  const password = text.slice(colon + 1);
  // No tunnel has a password with a NUL, where Argon2's reference code stops reading.
  if (isPasswordTooLong(password) || password.includes("\0")) return null;
  return { username: text.slice(0, colon), password };
}
