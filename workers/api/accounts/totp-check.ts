/** Compares a code with the encrypted secret of an account. Whether it was used before is decided by the row. */
import type { Config } from "../../config/config.ts";
import { findTotpStep, TOTP_SECRET_PURPOSE } from "../../identity/accounts/totp.ts";
import { decrypt } from "../../identity/encryption.ts";

/** @param mfaSecret null: the account has no second factor, so no code is right. */
export async function checkTotp(
  config: Config,
  mfaSecret: string | null,
  code: string,
): Promise<{ factor: "totp"; step: number | null }> {
  const secret = mfaSecret && (await decrypt(config, TOTP_SECRET_PURPOSE, mfaSecret));
  return { factor: "totp", step: secret ? findTotpStep(secret, code, Date.now()) : null };
}
