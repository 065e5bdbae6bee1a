/**
 * Access tokens: ES256 JWTs that are valid for 15 minutes. They name a session. Each request checks in the database
 * that the session still exists and what its user may do, so that a revocation takes effect at once.
 */
import { errors, jwtVerify, SignJWT, type JWTPayload } from "jose";
import { z } from "zod";
import { ACCESS_TOKEN_AUDIENCE, ACCESS_TOKEN_TYPE } from "../../../access/access-tokens.ts";
import { ACCESS_TOKEN_SECONDS } from "../../../protocol/limits.ts";
import type { Config } from "../../config/config.ts";
import { getAccessTokenKeys } from "../keys.ts";
import type { Role } from "../../../protocol/roles.ts";
import { BoundedMap } from "../../../shared/bounds/bounded-map.ts";
import { isCanonicalJwt } from "../../../shared/jwt.ts";

/** Access tokens whose verification an isolate caches. */
const VERIFIED_TOKENS_MAX = 1_000;

const ALGORITHM = "ES256";

const Claims = z.object({ sub: z.uuid(), sid: z.uuid(), org: z.uuid() });
type Claims = z.output<typeof Claims>;
/** An integer: `1e400` is a number as well, and a token with it would never expire. */
const Payload = Claims.extend({ exp: z.int() });

export async function signAccessToken(
  config: Config,
  claims: Claims & { role: Role },
): Promise<string> {
  const { kid, key } = (await getAccessTokenKeys(config)).signer;
  const { sub, ...others } = claims;
  return new SignJWT(others)
    .setProtectedHeader({ alg: ALGORITHM, typ: ACCESS_TOKEN_TYPE, kid })
    .setSubject(sub)
    .setIssuer(config.publicOrigin)
    .setAudience(ACCESS_TOKEN_AUDIENCE)
    .setIssuedAt()
    .setExpirationTime(`${ACCESS_TOKEN_SECONDS}s`)
    .sign(key);
}

/**
 * Verified tokens, until they expire: callers send the same token many times. The session itself is checked with each
 * request, so this cache prolongs nothing.
 */
const verifiedTokens = new BoundedMap<string, { claims: Claims; expiresAtMs: number }>(
  VERIFIED_TOKENS_MAX,
);

/** @returns null unless this is a valid access token of ours that has not expired. */
export async function verifyAccessToken(config: Config, token: string): Promise<Claims | null> {
  const known = verifiedTokens.get(token);
  if (known && known.expiresAtMs > Date.now()) return known.claims;
  const payload = Payload.safeParse(await verifySignature(config, token)).data;
  if (!payload) return null;
  const { exp, ...claims } = payload;
  verifiedTokens.set(token, { claims, expiresAtMs: exp * 1000 });
  return claims;
}

async function verifySignature(config: Config, token: string): Promise<JWTPayload | null> {
  if (!isCanonicalJwt(token)) return null;
  const { verifiers } = await getAccessTokenKeys(config);
  try {
    const { payload } = await jwtVerify(
      token,
      // Keys come from our own set, by id alone. Keys in a token's header are ignored.
      ({ kid }) => {
        const key = verifiers.get(kid ?? "");
        if (!key) throw new errors.JWKSNoMatchingKey();
        return key;
      },
      {
        algorithms: [ALGORITHM],
        typ: ACCESS_TOKEN_TYPE,
        issuer: config.publicOrigin,
        audience: ACCESS_TOKEN_AUDIENCE,
        requiredClaims: ["exp", "iat"],
      },
    );
    return payload;
  } catch (error) {
    if (error instanceof errors.JOSEError) return null;
    throw error;
  }
}
