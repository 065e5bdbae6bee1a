/** Signs the tokens with which programs visit a tunnel whose policy has `jwt_validation` without issuers. */
import { SignJWT } from "jose";
import { VISITOR_TOKEN_TYPE } from "../../../access/authenticators/tokens.ts";
import type { Config } from "../../config/config.ts";
import { getAccessTokenKeys } from "../keys.ts";

interface VisitorTokenClaims {
  subject: string;
  tunnelId: string;
  /** The tunnel's host below the service's own domain. */
  host: string;
  expiresAt: Date;
}

export async function signVisitorToken(
  config: Config,
  { subject, tunnelId, host, expiresAt }: VisitorTokenClaims,
): Promise<string> {
  const { kid, key } = (await getAccessTokenKeys(config)).signer;
  return new SignJWT({ tunnel: tunnelId })
    .setProtectedHeader({ alg: "ES256", typ: VISITOR_TOKEN_TYPE, kid })
    .setSubject(subject)
    .setIssuer(config.publicOrigin)
    .setAudience(host)
    .setIssuedAt()
    .setExpirationTime(expiresAt)
    .sign(key);
}
