/**
 * The passwords that visitors show. One that is new costs an Argon2 hash, which is meant to be slow: hashes
 * are made one at a time and with time for others in between, whoever gives wrong ones is slowed down, and a
 * password that was found right is remembered, so that it costs a hash once and not with each request.
 *
 * Requests that wait look for their turn by themselves, each by its own timer. One that is given up in the
 * middle, as the platform does with a visitor who leaves, then keeps nobody else waiting.
 */
import { getAddressGroup } from "../shared/address-group.ts";
import { PASSWORD_MAX_BYTES } from "../protocol/limits.ts";
import { takeFromBucket, type Bucket } from "../shared/bucket.ts";
import type { PasswordVerdict, AccessRequest } from "./authorize.ts";
import { remember } from "../shared/bounded-map.ts";
import { equalInConstantTime } from "../shared/constant-time.ts";
import { keyedHash } from "./keyed-hash.ts";
import type { BasicAuth } from "./settings.ts";

/** An `Authorization` line that is longer holds no password. */
const BASIC_CREDENTIALS_MAX_CHARS = 4_096;
/** Between two Argon2 hashes for visitors in one isolate: the rest of the time is for everybody else. */
export const PASSWORD_CHECK_INTERVAL_MS = 100;
/** How often whoever waits for a hash looks whether it is their turn. */
export const PASSWORD_CHECK_POLL_MS = 10;
/** Who has not looked for this long has left. */
export const PASSWORD_CHECK_GONE_MS = 1_000;
/** Passwords that wait to be hashed, in an isolate and for one of its tunnels. */
const PASSWORD_CHECKS_MAX = 32;
export const PASSWORD_CHECKS_MAX_PER_TUNNEL = 8;
/** Wrong passwords of one source address for one tunnel, at once and then one each. */
export const WRONG_PASSWORD_BURST = 5;
export const WRONG_PASSWORD_REFILL_MS = 12_000;
/** What an isolate remembers of passwords: right ones, wrong ones, and who gave wrong ones. */
const RIGHT_PASSWORDS_MAX = 10_000;
const WRONG_PASSWORDS_MAX = 1_000;
const WRONG_PASSWORD_ADDRESSES_MAX = 10_000;

const WRONG_PASSWORD_RULE = { burst: WRONG_PASSWORD_BURST, refillMs: WRONG_PASSWORD_REFILL_MS };

/** Of a visitor, all that counts here. */
type PasswordRequest = Pick<AccessRequest, "authorization" | "address">;

export interface PasswordDeps {
  /** Argon2. Slow, and nothing else runs meanwhile. */
  verify(hash: string, password: string): Promise<boolean>;
  now(): number;
  wait(ms: number): Promise<void>;
}

/** One password that waits for its hash, whoever shows it how often. */
interface QueueEntry {
  /** Tells tunnels apart: no two hashes have the same salt. */
  passwordHash: string;
  /** The request that makes the hash when it is this one's turn. */
  owner: symbol;
  seenAtMs: number;
}

export class PasswordAuthenticator {
  readonly #deps: PasswordDeps;
  /** By keyed hashes of the shown credentials together with what they were compared with. */
  readonly #right = new Map<string, true>();
  readonly #wrong = new Map<string, true>();
  readonly #wrongBySource = new Map<string, Bucket>();
  /** First come, first served. */
  readonly #queue = new Map<string, QueueEntry>();
  #nextHashAtMs = 0;

  constructor(tools: PasswordDeps) {
    this.#deps = tools;
  }

  async check(auth: BasicAuth, { authorization, address }: PasswordRequest): Promise<PasswordVerdict> {
    const shown = authorization === null ? null : parseBasicCredentials(authorization);
    if (shown === null) return "wrong";
    const key = await keyedHash(`${auth.passwordHash}\n${auth.username}\n${authorization}`);
    return this.#getRemembered(key) ?? this.#decide(key, auth, shown, address);
  }

  #getRemembered(key: string): "right" | "wrong" | undefined {
    if (this.#right.has(key)) return "right";
    return this.#wrong.has(key) ? "wrong" : undefined;
  }

  async #decide(
    key: string,
    auth: BasicAuth,
    shown: Credentials,
    address: string,
  ): Promise<PasswordVerdict> {
    const tools = this.#deps;
    const me = Symbol();
    const source = `${auth.passwordHash} ${getAddressGroup(address)}`;
    for (;;) {
      const refusal = this.#keepPlace(key, auth, me, source);
      if (refusal) return refusal;
      if (this.#isTurnOf(key, me)) {
        this.#nextHashAtMs = tools.now() + PASSWORD_CHECK_INTERVAL_MS;
        const isUser = equalInConstantTime(shown.username, auth.username);
        // In this order: a wrong name takes as long as a wrong password.
        const isRight = (await tools.verify(auth.passwordHash, shown.password)) && isUser;
        this.#settle(key, isRight, source);
      } else {
        await tools.wait(PASSWORD_CHECK_POLL_MS);
      }
      const known = this.#getRemembered(key);
      if (known) return known;
    }
  }

  /** Queues up, stays in the queue, or follows whoever waits with the same password already. */
  #keepPlace(
    key: string,
    { passwordHash }: BasicAuth,
    me: symbol,
    source: string,
  ): PasswordVerdict | undefined {
    const nowMs = this.#deps.now();
    const place = this.#queue.get(key);
    if (place && (place.owner === me || !isGone(place, nowMs))) {
      if (place.owner === me) place.seenAtMs = nowMs;
      return undefined;
    }
    if (!place && this.#isFull(passwordHash, nowMs)) {
      return { busyForMs: PASSWORD_CHECK_INTERVAL_MS * PASSWORD_CHECKS_MAX_PER_TUNNEL };
    }
    // Taken before anybody knows that it is wrong: a thousand at once are a thousand guesses.
    const { bucket, waitMs } = takeFromBucket(
      this.#wrongBySource.get(source),
      WRONG_PASSWORD_RULE,
      nowMs,
    );
    remember(this.#wrongBySource, source, bucket, WRONG_PASSWORD_ADDRESSES_MAX);
    if (waitMs > 0) return { tooManyWrongForMs: waitMs };
    this.#queue.set(key, { passwordHash, owner: me, seenAtMs: nowMs });
    return undefined;
  }

  #isFull(passwordHash: string, nowMs: number): boolean {
    let ofTunnel = 0;
    for (const [key, place] of this.#queue) {
      if (isGone(place, nowMs)) this.#queue.delete(key);
      else if (place.passwordHash === passwordHash) ofTunnel += 1;
    }
    return ofTunnel >= PASSWORD_CHECKS_MAX_PER_TUNNEL || this.#queue.size >= PASSWORD_CHECKS_MAX;
  }

  #isTurnOf(key: string, me: symbol): boolean {
    const nowMs = this.#deps.now();
    if (nowMs < this.#nextHashAtMs || this.#queue.get(key)?.owner !== me) return false;
    for (const [other, place] of this.#queue) if (!isGone(place, nowMs)) return other === key;
    return false;
  }

  #settle(key: string, isRight: boolean, source: string): void {
    this.#queue.delete(key);
    if (!isRight) return remember(this.#wrong, key, true, WRONG_PASSWORDS_MAX);
    remember(this.#right, key, true, RIGHT_PASSWORDS_MAX);
    const bucket = this.#wrongBySource.get(source);
    if (bucket) bucket.tokens = Math.min(WRONG_PASSWORD_BURST, bucket.tokens + 1);
  }
}

function isGone({ seenAtMs }: QueueEntry, nowMs: number): boolean {
  return nowMs - seenAtMs > PASSWORD_CHECK_GONE_MS;
}

export interface Credentials {
  username: string;
  password: string;
}

/** @returns null for whatever is not one well-formed `Basic` (RFC 7617). */
export function parseBasicCredentials(authorization: string): Credentials | null {
  if (authorization.length > BASIC_CREDENTIALS_MAX_CHARS) return null;
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization)?.[1];
  if (encoded === undefined || encoded.replace(/=+$/, "").length % 4 === 1) return null;
  const bytes = Uint8Array.from(atob(encoded), (char) => char.charCodeAt(0));
  const text = new TextDecoder().decode(bytes);
  const colon = text.indexOf(":");
  if (colon < 0) return null;
  const password = text.slice(colon + 1);
  // Longer ones, and those with a NUL, at which Argon2's reference code would stop reading, are never set.
  if (bytes.length - colon > PASSWORD_MAX_BYTES + 1 || password.includes("\0")) return null;
  return { username: text.slice(0, colon), password };
}
