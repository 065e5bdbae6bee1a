/** An agent's token as the bearer token of an API request: its bytes in base64 or base64url. */
import type { Config } from "../../config/config.ts";
import {
  decodeCapabilityToken,
  verifyCapabilityToken,
  type TokenPayload,
} from "./capability-token.ts";
import { isMasterKey } from "./master-keys.ts";
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
  const { organizationId, nonce } = verdict.ok;
  if (!isUnrestricted(verdict.ok)) return "restricted";
  return { orgId: toUuid(organizationId), nonce: toHex(nonce) };
}

/** Which kind of a machine's token this is by its form, valid or not. @returns null for every other text. */
export function recognizeMachineToken(bearer: string): "capabilityToken" | "masterKey" | null {
  if (isMasterKey(bearer)) return "masterKey";
  const bytes = fromCanonicalBase64(bearer);
  const token = bytes && decodeCapabilityToken(bytes);
  if (!token) return null;
  return token.payload.kind === "master" ? "masterKey" : "capabilityToken";
}

/** Whether the token may use every name in every project. Tokens of `underpass login` say so with the pattern `*`. */
export function isUnrestricted({
  project,
  allowedSubdomains,
}: Pick<TokenPayload, "project" | "allowedSubdomains">): boolean {
  return project === null && (allowedSubdomains.length === 0 || allowedSubdomains.includes("*"));
}
