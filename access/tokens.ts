/** Tokens that visitors show (`Authorization: Bearer <JWT>`), checked once and remembered until they end. */
import { decodeJwt, errors, jwtVerify, type JWTPayload, type JWTVerifyOptions } from "jose";
import { ISSUER_DOWN_MS, ISSUER_KEYS_MAX_MS } from "./limits.ts";
import type { JwtValidation } from "../protocol/schemas/access/policies.ts";
import type { IssuerKeys, KeySet } from "./issuer-keys.ts";
import type { TokenVerdict } from "./judge.ts";
import { remember } from "../shared/bounded-map.ts";
import { keyedHash } from "./secrets.ts";

export const VISITOR_TOKEN_MAX_CHARS = 16 * 1024;
export const VISITOR_TOKEN_LEEWAY_SECONDS = 30;
/** Tokens that an isolate remembers as good, each until it ends or its issuer's keys are asked for again. */
const VISITOR_TOKENS_MAX = 10_000;

/** Whoever can verify with one of the others can sign with it. */
const ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];

/** Where a rule names no issuer, this service is the one: under a name that no other can have. */
export const OWN_ISSUER = "";
/** Of its tokens. What it signs for another purpose is of another type. */
const OWN_TOKEN_TYPE = "at+jwt";

export interface TokenTools {
  keys: IssuerKeys;
  now(): number;
}

export class TokenGate {
  readonly #tools: TokenTools;
  /** By keyed hashes of a token together with the rule that it fulfils: until when. */
  readonly #good = new Map<string, number>();

  constructor(tools: TokenTools) {
    this.#tools = tools;
  }

  async check(rule: JwtValidation, authorization: string | null): Promise<TokenVerdict> {
    const token = authorization === null ? null : bearerOf(authorization);
    if (token === null) return "missing";
    if (token.length > VISITOR_TOKEN_MAX_CHARS) return "bad";
    const { allowed_issuers: issuers, allowed_audiences: audiences } = rule;
    const key = await keyedHash(JSON.stringify([issuers, audiences, token]));
    if ((this.#good.get(key) ?? 0) > this.#tools.now()) return "good";

    const payload = await this.#verify(rule, token);
    if (payload === "issuer_down") return { issuerDownForMs: ISSUER_DOWN_MS };
    if (payload === null || !Number.isFinite(payload.exp)) return "bad";
    const endsAtMs = ((payload.exp ?? 0) + VISITOR_TOKEN_LEEWAY_SECONDS) * 1000;
    // No longer than its issuer's keys are believed: one that is withdrawn takes its tokens along.
    const untilMs = Math.min(endsAtMs, this.#tools.now() + ISSUER_KEYS_MAX_MS);
    remember(this.#good, key, untilMs, VISITOR_TOKENS_MAX);
    return "good";
  }

  async #verify(rule: JwtValidation, token: string): Promise<JWTPayload | "issuer_down" | null> {
    const issuer = issuerOf(rule, token);
    if (issuer === null) return null;
    const options: JWTVerifyOptions = {
      algorithms: ALGORITHMS,
      requiredClaims: ["exp"],
      clockTolerance: VISITOR_TOKEN_LEEWAY_SECONDS,
      currentDate: new Date(this.#tools.now()),
    };
    if (rule.allowed_audiences) options.audience = rule.allowed_audiences;
    if (issuer === OWN_ISSUER) options.typ = OWN_TOKEN_TYPE;
    else options.issuer = issuer;

    return verifiedBy(this.#tools.keys, issuer, token, options);
  }
}

/** @returns null when it is not good by the keys that the issuer has now. */
export async function verifiedBy(
  issuerKeys: IssuerKeys,
  issuer: string,
  token: string,
  options: JWTVerifyOptions,
): Promise<JWTPayload | "issuer_down" | null> {
  const keys = await issuerKeys.of(issuer);
  if (keys === null) return "issuer_down";
  const payload = await verified(token, keys, options);
  if (payload !== "unknown_key") return payload;
  const newest = await issuerKeys.newestOf(issuer);
  if (newest === null) return "issuer_down";
  const again = await verified(token, newest, options);
  return again === "unknown_key" ? null : again;
}

/** Whose keys to try. Until it is verified, what the token says of its issuer decides nothing else. */
function issuerOf({ allowed_issuers: allowed }: JwtValidation, token: string): string | null {
  if (!allowed) return OWN_ISSUER;
  try {
    const { iss } = decodeJwt(token);
    return iss !== undefined && allowed.includes(iss) ? iss : null;
  } catch {
    return null;
  }
}

/** @returns null when the line holds no such token. */
function bearerOf(authorization: string): string | null {
  return /^Bearer +([\w.~+/=-]+)$/i.exec(authorization)?.[1] ?? null;
}

async function verified(
  token: string,
  keys: KeySet,
  options: JWTVerifyOptions,
): Promise<JWTPayload | "unknown_key" | null> {
  try {
    return (await jwtVerify(token, keys, options)).payload;
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) return "unknown_key";
    if (error instanceof errors.JWKSMultipleMatchingKeys)
      return verifiedByAny(token, error, options);
    // Whatever else an unverified token or an issuer's odd key makes a library say.
    return null;
  }
}

/** A token that names no key, of an issuer that has several. */
async function verifiedByAny(
  token: string,
  candidates: AsyncIterable<CryptoKey>,
  options: JWTVerifyOptions,
): Promise<JWTPayload | null> {
  for await (const key of candidates) {
    const payload = await jwtVerify(token, key, options).catch(() => null);
    if (payload) return payload.payload;
  }
  return null;
}
