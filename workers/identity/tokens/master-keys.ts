/** A master key as a bearer token: a prefix that people and secret scanners recognize, and its bytes in base64url. */
import type { Config } from "../../config/config.ts";
import { verifyCapabilityToken } from "./capability-token.ts";
import { fromBase64Url, toBase64Url, toHex, toUuid } from "../../../shared/bytes.ts";
import { getCapabilityTokenKeys } from "../keys.ts";

const PREFIX = "mtk_master_";

export function isMasterKey(bearer: string): boolean {
  return bearer.startsWith(PREFIX);
}

export function formatMasterKey(wireBytes: Uint8Array): string {
  return PREFIX + toBase64Url(wireBytes);
}

/** The organization and nonce in a master key. @returns null unless this server signed it and it has not expired. */
export async function verifyMasterKey(
  config: Config,
  bearer: string,
): Promise<{ orgId: string; nonce: string } | null> {
  const bytes = fromBase64Url(bearer.slice(PREFIX.length));
  if (!bytes) return null;
  const verdict = await verifyCapabilityToken(
    bytes,
    await getCapabilityTokenKeys(config),
    Date.now(),
  );
  if ("error" in verdict || verdict.ok.kind !== "master") return null;
  return { orgId: toUuid(verdict.ok.organizationId), nonce: toHex(verdict.ok.nonce) };
}
