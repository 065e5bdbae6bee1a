/** An agent's token as the bearer token of an API request: its bytes in base64 or base64url. */
import type { Config } from "../../config/config.ts";
import { verifyCapabilityToken } from "./capability-token.ts";
import { fromCanonicalBase64, toHex, toUuid } from "../../../shared/bytes.ts";
import { getCapabilityTokenKeys } from "../keys.ts";

/**
 * The organization and nonce in the token. @returns null unless it was signed by this server and has not expired;
 * "restricted" when it is only valid for some subdomains or for one project.
 */
export async function verifyUnrestrictedToken(
  config: Config,
  bearer: string,
): Promise<{ orgId: string; nonce: string } | "restricted" | null> {
  const bytes = fromCanonicalBase64(bearer);
  if (!bytes) return null;
  const verdict = await verifyCapabilityToken(
    bytes,
    await getCapabilityTokenKeys(config),
    Date.now(),
  );
  if ("error" in verdict || verdict.ok.kind !== "agent") return null;
  const { project, allowedSubdomains, organizationId, nonce } = verdict.ok;
  const isForAnyName = allowedSubdomains.length === 0 || allowedSubdomains.includes("*");
  if (project !== null || !isForAnyName) return "restricted";
  return { orgId: toUuid(organizationId), nonce: toHex(nonce) };
}
