/** Passwords of accounts: the rules for new ones, and a verification that takes the same time for all. */
import {
  COST,
  hashSecret,
  normalizeSecret,
  verifySecret,
} from "../../../access/authenticators/argon2.ts";
import { PASSWORD_MAX_BYTES, PASSWORD_MIN_CHARS } from "../../../protocol/limits.ts";
import { isCommonPassword } from "./common-passwords.ts";
import { toUtf8 } from "../../../shared/bytes.ts";

/** @returns the PHC string, `$argon2id$v=19$m=19456,t=2,p=1$…`. */
export function hashPassword(password: string): string {
  return hashSecret(password);
}

/** A hash that no password matches, with the same cost: verification takes as long where there is no account. */
export const DUMMY_HASH = [
  "$argon2id$v=19",
  `m=${COST.memoryCost},t=${COST.timeCost},p=${COST.parallelism}`,
  "A".repeat(22),
  "A".repeat(43),
].join("$");

/** @param hash null where there is no account: verification takes as long, and returns false. */
export function verifyPassword(hash: string | null, password: string): boolean {
  if (passwordBytes(password) > PASSWORD_MAX_BYTES) return false;
  return verifySecret(hash ?? DUMMY_HASH, password) && hash !== null;
}

/** Why a new password is not accepted, or null. */
export function getPasswordError(password: string, email: string): string | null {
  const normalized = normalizeSecret(password);
  if ([...normalized].length < PASSWORD_MIN_CHARS) {
    return `must have at least ${PASSWORD_MIN_CHARS} characters`;
  }
  if (passwordBytes(password) > PASSWORD_MAX_BYTES) {
    return `must have at most ${PASSWORD_MAX_BYTES} bytes`;
  }
  // Argon2's reference code takes C strings: it would ignore everything after a NUL.
  if (normalized.includes("\0")) return "must not contain a NUL character";
  const lowered = normalized.toLowerCase();
  if (lowered === email) return "must not be your email address";
  if (isCommonPassword(lowered)) return "is among the most common passwords";
  return null;
}

function passwordBytes(password: string): number {
  return toUtf8(normalizeSecret(password)).byteLength;
}
