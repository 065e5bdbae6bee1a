/** An agent's token as the bearer of a request: its bytes in base64, of either alphabet. */
import type { Config } from "../../config/config.ts";
import { verifyCapabilityToken } from "./capability-token.ts";
import { fromBase64, toHex, toUuid } from "../../../shared/bytes.ts";
import { getCapabilityTokenKeys } from "../keys.ts";

/**
 * Which token it says to be. @returns null unless it is signed by this server and not expired; "confined" when
 * it is for some names or one project only.
 */
export async function readUnrestrictedToken(
  config: Config,
  bearer: string,
): Promise<{ orgId: string; nonce: string } | "confined" | null> {
  const bytes = fromBase64(bearer);
  if (!bytes) return null;
  const verdict = await verifyCapabilityToken(bytes, await getCapabilityTokenKeys(config), Date.now());
  if ("fault" in verdict || verdict.ok.kind !== "agent") return null;
  const { project, allowedSubdomains, organizationId, nonce } = verdict.ok;
  const isForAnyName = allowedSubdomains.length === 0 || allowedSubdomains.includes("*");
  if (project !== null || !isForAnyName) return "confined";
  return { orgId: toUuid(organizationId), nonce: toHex(nonce) };
}
