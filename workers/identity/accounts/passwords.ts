/** Passwords of accounts: what makes a good one, and that no answer takes longer for being right. */
import { COST, hashSecret, normalizeSecret, verifySecret } from "../../../access/argon2.ts";
import { PASSWORD_MAX_BYTES, PASSWORD_MIN_CHARS } from "../../../protocol/limits.ts";
import { isCommonPassword } from "./common-passwords.ts";
import { toUtf8 } from "../../../shared/bytes.ts";

/** @returns the PHC string, `$argon2id$v=19$m=19456,t=2,p=1$…`. */
export function hashPassword(password: string): string {
  return hashSecret(password);
}

/** Of no password that anybody knows, at the same cost: where nobody has an account takes as long. */
export const DUMMY_HASH = [
  "$argon2id$v=19",
  `m=${COST.memoryCost},t=${COST.timeCost},p=${COST.parallelism}`,
  "A".repeat(22),
  "A".repeat(43),
].join("$");

/** @param hash null where there is no account: that takes as long, and is false. */
export function verifyPassword(hash: string | null, password: string): boolean {
  if (passwordBytes(password) > PASSWORD_MAX_BYTES) return false;
  return verifySecret(hash ?? DUMMY_HASH, password) && hash !== null;
}

/** What is wrong with a new password, or null. */
export function getPasswordError(password: string, email: string): string | null {
  const normalized = normalizeSecret(password);
  if ([...normalized].length < PASSWORD_MIN_CHARS) {
    return `must be at least ${PASSWORD_MIN_CHARS} characters`;
  }
  if (passwordBytes(password) > PASSWORD_MAX_BYTES) {
    return `must be at most ${PASSWORD_MAX_BYTES} bytes`;
  }
  // Argon2's reference code takes C strings: what follows a NUL would not count.
  if (normalized.includes("\0")) return "must not contain a NUL character";
  const lowered = normalized.toLowerCase();
  if (lowered === email) return "must not be the e-mail address";
  if (isCommonPassword(lowered)) return "is among the most common passwords";
  return null;
}

function passwordBytes(password: string): number {
  return toUtf8(normalizeSecret(password)).byteLength;
}
