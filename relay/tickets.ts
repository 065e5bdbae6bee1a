/** Verifies relay tickets (protocol/relay/ticket.ts) with the API's public keys, which it fetches and caches. */
import { request as requestHttps } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { createLocalJWKSet, errors, jwtVerify } from "jose";
import { z } from "zod";
import { RELAY_CLOCK_TOLERANCE_MS } from "../protocol/relay/limits.ts";
import { RELAY_TICKET_TYPE, toRelayAudience, RelayTicket } from "../protocol/relay/ticket.ts";
import { isCanonicalJwt } from "../shared/jwt.ts";
import { MINUTE_MS } from "../shared/time.ts";
import { request as requestHttp } from "../sockets/node-http.ts";

const JWKS_FETCH_MAX_MS = 5_000;
const JWKS_MAX_BYTES = 256 * 1024;
/** Keys are fetched again after this, so that a withdrawn key becomes invalid. */
const JWKS_MAX_AGE_MS = 10 * MINUTE_MS;
/** At most one fetch in this time, whatever key ids tickets name. */
export const JWKS_REFETCH_MIN_MS = 2_000;
/** The same while there are no keys at all. */
const JWKS_FIRST_FETCH_MIN_MS = 250;

const Jwks = z.object({ keys: z.array(z.looseObject({ kty: z.string() })).max(100) });

interface TicketOptions {
  relayId: string;
  fetchKeys(): Promise<unknown>;
  /** Milliseconds since the epoch. */
  now(): number;
}

/** The keys could not be fetched, so the ticket may be valid: the agent should retry, unlike with an invalid ticket. */
export class KeysUnavailableError extends Error {
  override name = "KeysUnavailableError";
}

export class TicketVerifier {
  readonly #options: TicketOptions;
  #keys: ReturnType<typeof createLocalJWKSet> | undefined;
  /** By the steady clock: that of the machine may be set back. */
  #fetchedAtMs = -Infinity;
  #fetchStartedAtMs = -Infinity;
  #fetching: Promise<void> | undefined;

  constructor(options: TicketOptions) {
    this.#options = options;
  }

  /**
   * @param graceMs how long after its expiry a ticket is still accepted.
   * @returns null for a ticket that is not valid at this relay.
   * @throws KeysUnavailableError
   */
  async verify(text: string, graceMs = 0): Promise<RelayTicket | null> {
    const startedAtMs = performance.now();
    if (startedAtMs - this.#fetchedAtMs > JWKS_MAX_AGE_MS) await this.#refresh();
    let ticket = await this.#check(text, graceMs);
    if (ticket === "unknown_key" && this.#fetchedAtMs < startedAtMs) {
      // It may be signed with a new key, so it is only refused with a key set newer than this call.
      await this.#refresh("wait");
      ticket = await this.#check(text, graceMs);
      if (ticket === "unknown_key" && this.#fetchedAtMs < startedAtMs) {
        throw new KeysUnavailableError("the API's keys could not be fetched");
      }
    }
    return ticket === "unknown_key" ? null : ticket;
  }

  /** Fetches the keys, so that the first agent does not have to wait for them. */
  async prefetchKeys(): Promise<void> {
    await this.#refresh();
  }

  async #check(text: string, graceMs: number): Promise<RelayTicket | "unknown_key" | null> {
    if (!isCanonicalJwt(text)) return null;
    if (!this.#keys) throw new KeysUnavailableError("the API's keys could not be fetched yet");
    try {
      const { payload } = await jwtVerify(text, this.#keys, {
        algorithms: ["ES256"],
        typ: RELAY_TICKET_TYPE,
        audience: toRelayAudience(this.#options.relayId),
        requiredClaims: ["exp", "aud"],
        currentDate: new Date(this.#options.now()),
        clockTolerance: Math.floor((RELAY_CLOCK_TOLERANCE_MS + graceMs) / 1_000),
      });
      return RelayTicket.safeParse(payload).data ?? null;
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) return "unknown_key";
      if (error instanceof errors.JOSEError) return null;
      throw error;
    }
  }

  /**
   * Never rejects: without a response the keys stay as they are.
   * @param ifRecent if the keys were just fetched: whether to wait until they may be fetched again, once for all callers.
   */
  async #refresh(ifRecent: "skip" | "wait" = "skip"): Promise<void> {
    if (this.#fetching) return this.#fetching;
    const minMs = this.#keys ? JWKS_REFETCH_MIN_MS : JWKS_FIRST_FETCH_MIN_MS;
    const waitMs = this.#fetchStartedAtMs + minMs - performance.now();
    if (waitMs > 0 && ifRecent === "skip") return;
    this.#fetching = sleep(Math.max(0, waitMs), undefined, { ref: false })
      .then(() => {
        this.#fetchStartedAtMs = performance.now();
        return this.#options.fetchKeys();
      })
      .then((answer) => {
        this.#keys = createLocalJWKSet(Jwks.parse(answer));
        this.#fetchedAtMs = performance.now();
      })
      .catch(() => undefined)
      .finally(() => (this.#fetching = undefined));
    return this.#fetching;
  }
}

/** `GET /.well-known/jwks.json` of the API. */
export async function fetchJwks(apiUrl: string, host: string | undefined): Promise<unknown> {
  const request = apiUrl.startsWith("https:") ? requestHttps : requestHttp;
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  request(
    `${apiUrl}/.well-known/jwks.json`,
    { headers: host === undefined ? {} : { host }, signal: AbortSignal.timeout(JWKS_FETCH_MAX_MS) },
    (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part: string) => {
        text += part;
        if (text.length > JWKS_MAX_BYTES) response.destroy(new Error("the key set is too large"));
      });
      response.on("error", reject);
      response.on("end", () => {
        if (response.statusCode !== 200) {
          reject(new Error(`the key set was answered with status ${response.statusCode}`));
          return;
        }
        try {
          resolve(JSON.parse(text));
        } catch (error) {
          reject(error);
        }
      });
    },
  )
    .on("error", reject)
    .end();
  return promise;
}
