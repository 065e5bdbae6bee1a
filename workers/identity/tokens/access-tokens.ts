/**
 * Access tokens: ES256 JWTs of 15 minutes. They name a session; whether it still lives and what its user
 * may do is asked of the database each time, so that revoking takes effect at once.
 */
import { errors, jwtVerify, SignJWT, type JWTPayload } from "jose";
import { z } from "zod";
import { ACCESS_TOKEN_SECONDS } from "../../../protocol/limits.ts";
import type { Config } from "../../config/config.ts";
import { getAccessTokenKeys } from "../keys.ts";
import type { Role } from "../../../protocol/roles.ts";
import { BoundedMap } from "../../../shared/bounded-map.ts";

/** Access tokens whose signature an isolate remembers. */
const VERIFIED_TOKENS_MAX = 1_000;

const AUDIENCE = "underpass";
/** RFC 9068: no other JWT of ours can be taken for one of these. */
const TYPE = "at+jwt";
const ALGORITHM = "ES256";

const Claims = z.object({ sub: z.uuid(), sid: z.uuid(), org: z.uuid() });
export type Claims = z.output<typeof Claims>;
/** Ours end at a whole second; `1e400` would be a number too, and never come. */
const Payload = Claims.extend({ exp: z.int() });

export async function signAccessToken(
  config: Config,
  claims: Claims & { role: Role },
): Promise<string> {
  const { kid, key } = (await getAccessTokenKeys(config)).signer;
  const { sub, ...others } = claims;
  return new SignJWT(others)
    .setProtectedHeader({ alg: ALGORITHM, typ: TYPE, kid })
    .setSubject(sub)
    .setIssuer(config.publicOrigin)
    .setAudience(AUDIENCE)
    .setIssuedAt()
    .setExpirationTime(`${ACCESS_TOKEN_SECONDS}s`)
    .sign(key);
}

/**
 * Signatures that held, until their tokens end: whoever calls often sends the same token again. What a
 * session may do is asked anew each time, so remembering this prolongs nothing.
 */
const verifiedTokens = new BoundedMap<string, { claims: Claims; endsAtMs: number }>(VERIFIED_TOKENS_MAX);

/** @returns null for whatever is not an access token of ours that is good now. */
export async function verifyAccessToken(config: Config, token: string): Promise<Claims | null> {
  const known = verifiedTokens.get(token);
  if (known && known.endsAtMs > Date.now()) return known.claims;
  const payload = Payload.safeParse(await verifySignature(config, token)).data;
  if (!payload) return null;
  const { exp, ...claims } = payload;
  verifiedTokens.set(token, { claims, endsAtMs: exp * 1000 });
  return claims;
}

async function verifySignature(config: Config, token: string): Promise<JWTPayload | null> {
  const { verifiers } = await getAccessTokenKeys(config);
  try {
    const { payload } = await jwtVerify(
      token,
      // Keys come from our own set by their id alone; what a header says of keys is not looked at.
      ({ kid }) => {
        const key = verifiers.get(kid ?? "");
        if (!key) throw new errors.JWKSNoMatchingKey();
        return key;
      },
      {
        algorithms: [ALGORITHM],
        typ: TYPE,
        issuer: config.publicOrigin,
        audience: AUDIENCE,
        requiredClaims: ["exp", "iat"],
      },
    );
    return payload;
  } catch (error) {
    if (error instanceof errors.JOSEError) return null;
    throw error;
  }
}
