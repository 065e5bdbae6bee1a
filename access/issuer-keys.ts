/**
 * The public keys of token issuers. They are the issuers' to change: what was fetched is believed for a
 * while, and a token that names a key we have not seen makes us ask again, at a pace that strangers with
 * made-up tokens can't raise.
 */
import { createLocalJWKSet, type JSONWebKeySet } from "jose";
import { z } from "zod";
import { ISSUER_DOWN_MS, ISSUER_KEYS_MAX_MS } from "./limits.ts";
import { remember } from "../shared/bounded-map.ts";

const ISSUER_CALL_MAX_MS = 5_000;
const ISSUER_DOCUMENT_MAX_BYTES = 256 * 1024;
/** A token that names an unknown key makes us ask again, but no more often than this. */
export const ISSUER_ASK_AGAIN_MS = 60_000;
const ISSUERS_CACHE_MAX = 1_000;

export type KeySet = ReturnType<typeof createLocalJWKSet>;
export type LoadKeys = (issuer: string) => Promise<JSONWebKeySet>;

interface Known {
  keys: KeySet | null;
  /** When `keys` came. */
  loadedAtMs: number;
  /** When we last asked, and what came or comes of it. */
  askedAtMs: number;
  answer: Promise<KeySet | null>;
}

export class IssuerKeys {
  readonly #load: LoadKeys;
  readonly #now: () => number;
  readonly #known = new Map<string, Known>();

  /** @param load may be slow, and may fail. */
  constructor(load: LoadKeys, now: () => number) {
    this.#load = load;
    this.#now = now;
  }

  /** @returns null when they can't be had now. */
  async of(issuer: string): Promise<KeySet | null> {
    const known = this.#known.get(issuer);
    const nowMs = this.#now();
    if (!known) return this.#ask(issuer, null);
    if (known.keys && nowMs - known.loadedAtMs < ISSUER_KEYS_MAX_MS) return known.keys;
    return nowMs - known.askedAtMs < ISSUER_DOWN_MS ? known.answer : this.#ask(issuer, null);
  }

  /**
   * For a token that names a key we don't know: what the issuer says when it is asked again, or said when it
   * was a moment ago.
   */
  async newestOf(issuer: string): Promise<KeySet | null> {
    const known = this.#known.get(issuer);
    const isRecent = known && this.#now() - known.askedAtMs < ISSUER_ASK_AGAIN_MS;
    return isRecent ? known.answer : this.#ask(issuer, known ?? null);
  }

  #ask(issuer: string, before: Known | null): Promise<KeySet | null> {
    const askedAtMs = this.#now();
    const answer = this.#load(issuer).then(
      (set) => {
        known.keys = createLocalJWKSet(set);
        known.loadedAtMs = this.#now();
        return known.keys;
      },
      () => null,
    );
    const { keys = null, loadedAtMs = 0 } = before ?? {};
    const known: Known = { keys, loadedAtMs, askedAtMs, answer };
    remember(this.#known, issuer, known, ISSUERS_CACHE_MAX);
    return answer;
  }
}

const Discovery = z.object({ issuer: z.string(), jwks_uri: z.url({ protocol: /^https?$/ }) });
const Jwks = z.object({ keys: z.array(z.looseObject({ kty: z.string() })) });

/** As OpenID Connect Discovery 1.0 §4 says. @throws whatever keeps it from being so. */
export async function discoverKeys(
  issuer: string,
  fetchJson: (url: string) => Promise<unknown>,
): Promise<JSONWebKeySet> {
  const base = issuer.replace(/\/$/, "");
  const document = Discovery.parse(await fetchJson(`${base}/.well-known/openid-configuration`));
  // Otherwise an issuer could speak for another one (§4.3).
  if (document.issuer !== issuer) throw new Error(`the document is of ${document.issuer}`);
  return Jwks.parse(await fetchJson(document.jwks_uri));
}

/**
 * What a tenant named is fetched with care: no other place than the one that was named, no longer and no
 * more than a bound. That it is a public address is up to the network that the Worker is bound to.
 */
export async function fetchJson(
  url: string,
  { allowHttp }: { allowHttp: boolean },
): Promise<unknown> {
  if (!allowHttp && !url.startsWith("https://")) throw new Error("only https is fetched");
  const answer = await fetch(url, {
    redirect: "manual",
    headers: { accept: "application/json" },
    signal: AbortSignal.timeout(ISSUER_CALL_MAX_MS),
  });
  if (answer.status !== 200 || answer.body === null) {
    throw new Error(`${url} answered ${answer.status}`);
  }
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of answer.body as ReadableStream<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > ISSUER_DOCUMENT_MAX_BYTES) throw new Error(`${url} is too large`);
    text += decoder.decode(chunk, { stream: true });
  }
  return JSON.parse(text + decoder.decode());
}
