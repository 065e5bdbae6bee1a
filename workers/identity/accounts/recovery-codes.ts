/** Recovery codes: what lets somebody in whose authenticator is gone, each of them once. */
import { RECOVERY_CODES } from "../../../protocol/limits.ts";
import { randomString } from "./codes.ts";
import { sha256Hex } from "../encryption.ts";

/** 80 random bits. */
const RECOVERY_CODE_CHARS = 16;

/** Base32 in lower case: nothing in it is taken for something else in it. */
const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";

/** A set of them, each as `abcd-efgh-ijkl-mnop`. */
export function generateRecoveryCodes(): string[] {
  return Array.from({ length: RECOVERY_CODES }, () =>
    randomString(ALPHABET, RECOVERY_CODE_CHARS).match(/.{4}/g)!.join("-"),
  );
}

/** However it is typed. Bound to the account: the same code is another hash elsewhere. */
export function hashRecoveryCode(userId: string, typed: string): Promise<string> {
  const code = typed.toLowerCase().replace(/[\s-]/g, "");
  return sha256Hex(`${userId} ${code}`);
}
