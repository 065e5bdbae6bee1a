/**
 * Visitors' tokens (`Authorization: Bearer <JWT>`): verified once, then cached until they expire. An access token of the
 * API is never accepted, whatever a rule says.
 */
import { decodeJwt, errors, jwtVerify, type JWTPayload, type JWTVerifyOptions } from "jose";
import { ISSUER_DOWN_MS, ISSUER_KEYS_MAX_MS } from "./limits.ts";
import { isAccessToken } from "../access-tokens.ts";
import type { JwtValidation } from "../../protocol/schemas/access/policies.ts";
import type { IssuerKeys, KeySet } from "./issuer-keys.ts";
import type { TokenVerdict } from "../access-request.ts";
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";
import { computeKeyedHash } from "./keyed-hash.ts";
import { parseBearerToken } from "../../shared/bearer-token.ts";
import { isCanonicalJwt } from "../../shared/jwt.ts";

export const VISITOR_TOKEN_MAX_CHARS = 16 * 1024;
export const VISITOR_TOKEN_LEEWAY_SECONDS = 30;
/** Verified tokens that an isolate caches, each until it expires or its issuer's keys are fetched again. */
const VISITOR_TOKENS_MAX = 10_000;
/** Keys that a token without a key id is verified with: each costs up to 2 ms of processor time. */
export const CANDIDATE_KEYS_MAX = 4;

/** Asymmetric algorithms only: with a symmetric one, everyone who can verify a token can also sign one. */
const ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];

/** Stands for this service, when a rule names no issuer. No other issuer can have an empty name. */
export const OWN_ISSUER = "";
/** The `typ` of tokens that this service signs for the visitors of one tunnel. Tokens for other purposes have other types. */
export const VISITOR_TOKEN_TYPE = "underpass-visitor-token+jwt";

/** The tunnel that a token must have been minted for, if the rule names no issuer. */
export interface TokenRecipient {
  tunnelId: string;
  /** Below the service's own domain, even when the visitor uses a custom domain of the tunnel. */
  host: string;
}

export interface TokenDeps {
  keys: IssuerKeys;
  now(): number;
}

interface JwtDeps extends TokenDeps {
  /** The issuer of this service's own tokens. */
  apiOrigin: string;
}

export class JwtAuthenticator {
  readonly #deps: JwtDeps;
  /** When to verify again, by the keyed hash of a token and the rule that it satisfies. */
  readonly #valid = new BoundedMap<string, number>(VISITOR_TOKENS_MAX);

  constructor(deps: JwtDeps) {
    this.#deps = deps;
  }

  async check(
    rule: JwtValidation,
    authorization: string | null,
    recipient: TokenRecipient,
  ): Promise<TokenVerdict> {
    const token = parseBearerToken(authorization);
    if (token === null) return "missing";
    if (token.length > VISITOR_TOKEN_MAX_CHARS) return "invalid";
    if (isAccessToken(token, this.#deps.apiOrigin)) return "invalid";
    const { allowed_issuers: issuers, allowed_audiences: audiences } = rule;
    const { tunnelId, host } = recipient;
    const key = await computeKeyedHash(JSON.stringify([issuers, audiences, tunnelId, host, token]));
    if ((this.#valid.get(key) ?? 0) > this.#deps.now()) return "valid";

    const payload = await this.#verify(rule, token, recipient);
    if (payload === "issuer_down") return { issuerDownForMs: ISSUER_DOWN_MS };
    if (payload === null || !Number.isFinite(payload.exp)) return "invalid";
    const expiresAtMs = ((payload.exp ?? 0) + VISITOR_TOKEN_LEEWAY_SECONDS) * 1000;
    // No longer than its issuer's keys are cached: tokens of a withdrawn key must become invalid.
    const untilMs = Math.min(expiresAtMs, this.#deps.now() + ISSUER_KEYS_MAX_MS);
    this.#valid.set(key, untilMs);
    return "valid";
  }

  async #verify(
    rule: JwtValidation,
    token: string,
    { tunnelId, host }: TokenRecipient,
  ): Promise<JWTPayload | "issuer_down" | null> {
    const issuer = findIssuer(rule, token);
    if (issuer === null) return null;
    const { keys, apiOrigin } = this.#deps;
    const options: JWTVerifyOptions = {
      algorithms: ALGORITHMS,
      requiredClaims: ["exp"],
      clockTolerance: VISITOR_TOKEN_LEEWAY_SECONDS,
      currentDate: new Date(this.#deps.now()),
    };
    if (issuer !== OWN_ISSUER) {
      options.issuer = issuer;
      if (rule.allowed_audiences) options.audience = rule.allowed_audiences;
      return verifyWithIssuerKeys(keys, issuer, token, options);
    }
    if (rule.allowed_audiences && !rule.allowed_audiences.includes(host)) return null;
    Object.assign(options, { typ: VISITOR_TOKEN_TYPE, issuer: apiOrigin, audience: host });
    const payload = await verifyWithIssuerKeys(keys, issuer, token, options);
    // A deleted tunnel's name can go to another owner, its id cannot.
    return typeof payload === "object" && payload?.["tunnel"] !== tunnelId ? null : payload;
  }
}

/** @returns null when the token is not valid under the issuer's current keys. */
export async function verifyWithIssuerKeys(
  issuerKeys: IssuerKeys,
  issuer: string,
  token: string,
  options: JWTVerifyOptions,
): Promise<JWTPayload | "issuer_down" | null> {
  if (!isCanonicalJwt(token)) return null;
  const keys = await issuerKeys.get(issuer);
  if (keys === null) return "issuer_down";
  const payload = await verifyWithKeys(token, keys, options);
  if (payload !== "unknown_key") return payload;
  const refreshed = await issuerKeys.refresh(issuer);
  if (refreshed === null) return "issuer_down";
  const retried = await verifyWithKeys(token, refreshed, options);
  return retried === "unknown_key" ? null : retried;
}

/** Selects the keys to verify with. The token's unverified `iss` claim is used for nothing else. */
function findIssuer({ allowed_issuers: allowed }: JwtValidation, token: string): string | null {
  if (!allowed) return OWN_ISSUER;
  try {
    const { iss } = decodeJwt(token);
    return iss !== undefined && allowed.includes(iss) ? iss : null;
  } catch {
    return null;
  }
}

async function verifyWithKeys(
  token: string,
  keys: KeySet,
  options: JWTVerifyOptions,
): Promise<JWTPayload | "unknown_key" | null> {
  try {
    return (await jwtVerify(token, keys, options)).payload;
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) return "unknown_key";
    if (error instanceof errors.JWKSMultipleMatchingKeys)
      return verifyWithAnyKey(token, error, options);
    // Any other error that a malformed token or an unusual key causes in the library.
    return null;
  }
}

/** For a token without a key id whose issuer has several keys: the first ones of the right type are tried. */
async function verifyWithAnyKey(
  token: string,
  candidates: AsyncIterable<CryptoKey>,
  options: JWTVerifyOptions,
): Promise<JWTPayload | null> {
  let tried = 0;
  for await (const key of candidates) {
    const payload = await jwtVerify(token, key, options).catch(() => null);
    if (payload) return payload.payload;
    if (++tried === CANDIDATE_KEYS_MAX) return null;
  }
  return null;
}
