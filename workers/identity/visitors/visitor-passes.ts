/**
 * Visitor passes: the signed cookie that a tunnel's identity gate requires. Public keys suffice to verify it, so the edge
 * and the tunnel's object do so themselves.
 */
import { SignJWT } from "jose";
import { PASS_ALGORITHM, PASS_TYPE } from "../../../access/authenticators/passes.ts";
import { VISITOR_PASS_SECONDS } from "../../limits.ts";
import type { Config } from "../../config/config.ts";
import { getAccessTokenKeys } from "../keys.ts";

/** @param host of the tunnel: the pass is valid on this host only. */
export async function signVisitorPass(
  config: Config,
  { email, tunnelId, host }: { email: string; tunnelId: string; host: string },
): Promise<string> {
  const { kid, key } = (await getAccessTokenKeys(config)).signer;
  return new SignJWT({ email, tunnel: tunnelId })
    .setProtectedHeader({ alg: PASS_ALGORITHM, typ: PASS_TYPE, kid })
    .setAudience(host)
    .setIssuedAt()
    .setExpirationTime(`${VISITOR_PASS_SECONDS}s`)
    .sign(key);
}
