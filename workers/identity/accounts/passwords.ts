/** The rules for new passwords of accounts. */
import {
  PASSWORD_HASH_COST,
  isPasswordTooLong,
  normalizeSecret,
} from "../../../access/authenticators/password-hash.ts";
import { PASSWORD_MAX_BYTES, PASSWORD_MIN_CHARS } from "../../../protocol/limits.ts";
import { isCommonPassword } from "./common-passwords.ts";

/** A hash that no password matches, with the same cost: verification takes as long where there is no account. */
export const DUMMY_HASH = [
  "$argon2id$v=19",
  `m=${PASSWORD_HASH_COST.memoryCost},t=${PASSWORD_HASH_COST.timeCost},p=${PASSWORD_HASH_COST.parallelism}`,
  "A".repeat(22),
  "A".repeat(43),
].join("$");

/** Why a new password is not accepted, or null. */
export function getPasswordError(password: string, email: string): string | null {
  const normalized = normalizeSecret(password);
  if ([...normalized].length < PASSWORD_MIN_CHARS) {
    return `must have at least ${PASSWORD_MIN_CHARS} characters`;
  }
  if (isPasswordTooLong(password)) {
    return `must have at most ${PASSWORD_MAX_BYTES} bytes`;
  }
  // Argon2's reference code takes C strings: it would ignore everything after a NUL.
  if (normalized.includes("\0")) return "must not contain a NUL character";
  const lowered = normalized.toLowerCase();
  if (lowered === email) return "must not be your email address";
  if (isCommonPassword(lowered)) return "is among the most common passwords";
  return null;
}
