/** Passwords: what makes a good one, and Argon2id at OWASP's first recommendation (19 MiB, t=2, p=1). */
import Argon2, { generateSalt } from "@phi-ag/argon2";
import wasm from "@phi-ag/argon2/argon2.wasm";
import { PASSWORD_MAX_BYTES, PASSWORD_MIN_CHARS } from "../../protocol/limits.ts";
import { isCommonPassword } from "./common-passwords.ts";
import { utf8 } from "./encoding.ts";

const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1, hashLength: 32 };
const SALT_BYTES = 16;

let argon2: Argon2 | undefined;

/** Runs to its end without yielding, so an isolate never holds the memory of two hashes. */
function hasher(): Argon2 {
  argon2 ??= new Argon2(new WebAssembly.Instance(wasm));
  return argon2;
}

/** @returns the PHC string, `$argon2id$v=19$m=19456,t=2,p=1$…`. */
export function hashPassword(password: string): string {
  return hasher().hash(normalizePassword(password), { ...COST, salt: generateSalt(SALT_BYTES) })
    .encoded;
}

/** Of no password that anybody knows, at the same cost: where nobody has an account takes as long. */
export const NO_ONES_HASH = [
  "$argon2id$v=19",
  `m=${COST.memoryCost},t=${COST.timeCost},p=${COST.parallelism}`,
  "A".repeat(22),
  "A".repeat(43),
].join("$");

/** @param hash null where there is no account: that takes as long, and is false. */
export function verifyPassword(hash: string | null, password: string): boolean {
  if (passwordBytes(password) > PASSWORD_MAX_BYTES) return false;
  const { success } = hasher().tryVerify(hash ?? NO_ONES_HASH, normalizePassword(password));
  return success && hash !== null;
}

/** What is wrong with a new password, or null. */
export function passwordFault(password: string, email: string): string | null {
  const normalized = normalizePassword(password);
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

/** The same keys pressed on another system: the same password. */
function normalizePassword(password: string): string {
  return password.normalize("NFKC");
}

function passwordBytes(password: string): number {
  return utf8(normalizePassword(password)).byteLength;
}
