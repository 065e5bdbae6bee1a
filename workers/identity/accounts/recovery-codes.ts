/** Recovery codes: each signs in once without the authenticator. */
import { RECOVERY_CODE_COUNT } from "../../../protocol/limits.ts";
import { randomString } from "./codes.ts";
import { sha256Hex } from "../encryption.ts";

/** 80 random bits. */
const RECOVERY_CODE_CHARS = 16;

/** Base32 in lower case: no two of its characters look alike. */
const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";

/** A set of them, each as `abcd-efgh-ijkl-mnop`. */
export function generateRecoveryCodes(): string[] {
  return Array.from({ length: RECOVERY_CODE_COUNT }, () =>
    randomString(ALPHABET, RECOVERY_CODE_CHARS).match(/.{4}/g)!.join("-"),
  );
}

/** Ignores case, spaces and hyphens. The account is hashed as well: the same code of another account has another hash. */
export function hashRecoveryCode(userId: string, typed: string): Promise<string> {
  const code = typed.toLowerCase().replace(/[\s-]/g, "");
  return sha256Hex(`${userId} ${code}`);
}
