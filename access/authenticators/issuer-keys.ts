/**
 * The public keys of token issuers, cached because issuers rotate them. A token with an unknown key id causes
 * a refetch, at a rate that a visitor with forged tokens cannot raise.
 */
import { createLocalJWKSet, type JSONWebKeySet } from "jose";
import { z } from "zod";
import { ISSUER_DOWN_MS, ISSUER_KEYS_MAX_MS } from "./limits.ts";
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";
import { isRecent, MINUTE_MS } from "../../shared/time.ts";

const ISSUER_REQUEST_TIMEOUT_MS = 5_000;
const ISSUER_DOCUMENT_MAX_BYTES = 256 * 1024;
/** A token with an unknown key id causes a refetch, but no more often than this. */
export const ISSUER_REFETCH_MIN_MS = MINUTE_MS;
/** Together with the bounds of a key set, the memory that tenants can fill: some 50 MB. */
const ISSUERS_CACHE_MAX = 500;
/** Issuers publish a few keys. A set with more is refused. */
export const ISSUER_KEYS_MAX = 50;

export type KeySet = ReturnType<typeof createLocalJWKSet>;
export type LoadKeys = (issuer: string) => Promise<JSONWebKeySet>;

interface Entry {
  keys: KeySet | null;
  /** When `keys` were received. */
  loadedAtMs: number;
  /** When the last request started, and its result. */
  requestedAtMs: number;
  response: Promise<KeySet | null>;
}

export class IssuerKeys {
  readonly #load: LoadKeys;
  readonly #now: () => number;
  readonly #entries = new BoundedMap<string, Entry>(ISSUERS_CACHE_MAX);

  /** @param load may be slow and may reject. */
  constructor(load: LoadKeys, now: () => number) {
    this.#load = load;
    this.#now = now;
  }

  /** @returns null when the keys are unavailable now. */
  async get(issuer: string): Promise<KeySet | null> {
    const entry = this.#entries.get(issuer);
    const nowMs = this.#now();
    if (!entry) return this.#fetch(issuer, null);
    if (entry.keys && isRecent(entry.loadedAtMs, ISSUER_KEYS_MAX_MS, nowMs)) return entry.keys;
    return isRecent(entry.requestedAtMs, ISSUER_DOWN_MS, nowMs)
      ? entry.response
      : this.#fetch(issuer, null);
  }

  /** For a token with an unknown key id: fetches the keys again, or returns those of a recent request. */
  async refresh(issuer: string): Promise<KeySet | null> {
    const entry = this.#entries.get(issuer);
    return entry && isRecent(entry.requestedAtMs, ISSUER_REFETCH_MIN_MS, this.#now())
      ? entry.response
      : this.#fetch(issuer, entry ?? null);
  }

  #fetch(issuer: string, previous: Entry | null): Promise<KeySet | null> {
    const requestedAtMs = this.#now();
    const response = this.#load(issuer).then(
      (set) => {
        entry.keys = createLocalJWKSet(set);
        entry.loadedAtMs = this.#now();
        return entry.keys;
      },
      () => null,
    );
    const { keys = null, loadedAtMs = 0 } = previous ?? {};
    const entry: Entry = { keys, loadedAtMs, requestedAtMs, response };
    this.#entries.set(issuer, entry);
    return response;
  }
}

const Discovery = z.object({ issuer: z.string(), jwks_uri: z.url({ protocol: /^https?$/ }) });

const ShortText = z.string().max(32);
const Coordinate = z.string().max(100);
/**
 * A public key (RFC 7517 §4, RFC 7518 §6, RFC 8037 §2), without members that nothing reads, such as certificates. A
 * modulus has at most 8,192 bits: verifying with a larger one takes milliseconds.
 */
const PublicKey = z.object({
  kty: z.enum(["EC", "OKP", "RSA"]),
  kid: z.string().max(256).optional(),
  alg: ShortText.optional(),
  use: ShortText.optional(),
  key_ops: z.array(ShortText).max(8).optional(),
  crv: ShortText.optional(),
  x: Coordinate.optional(),
  y: Coordinate.optional(),
  n: z.string().max(1_400).optional(),
  e: Coordinate.optional(),
});
/** Without keys that no token can be verified with. */
const Jwks = z.object({
  keys: z
    .array(z.unknown())
    .max(ISSUER_KEYS_MAX)
    .transform((keys) => keys.flatMap((key) => PublicKey.safeParse(key).data ?? [])),
});

/** OpenID Connect Discovery 1.0 §4. @throws when any step fails. */
export async function discoverKeys(
  issuer: string,
  fetchJson: (url: string) => Promise<unknown>,
): Promise<JSONWebKeySet> {
  const base = issuer.replace(/\/$/, "");
  const document = Discovery.parse(await fetchJson(`${base}/.well-known/openid-configuration`));
  // Otherwise one issuer could publish keys for another (§4.3).
  if (document.issuer !== issuer)
    throw new Error(`the discovery document names the issuer ${document.issuer}`);
  return Jwks.parse(await fetchJson(document.jwks_uri));
}

/**
 * Fetches a URL that a tenant chose: redirects are not followed, and time and size are bounded. The network
 * that the Worker is bound to ensures that the address is public.
 */
export async function fetchJson(
  url: string,
  { allowHttp }: { allowHttp: boolean },
): Promise<unknown> {
  if (!allowHttp && !url.startsWith("https://"))
    throw new Error("the URL must start with https://");
  const response = await fetch(url, {
    redirect: "manual",
    headers: { accept: "application/json" },
    signal: AbortSignal.timeout(ISSUER_REQUEST_TIMEOUT_MS),
  });
  if (response.status !== 200 || response.body === null) {
    throw new Error(`${url} responded with status ${response.status}`);
  }
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body as ReadableStream<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > ISSUER_DOCUMENT_MAX_BYTES) throw new Error(`${url} is too large`);
    text += decoder.decode(chunk, { stream: true });
  }
  return JSON.parse(text + decoder.decode());
}
