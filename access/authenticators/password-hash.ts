/**
 * Stored password hashes: their cost, their text form, and which bytes of a password they are made of. Imports no
 * WebAssembly, so that the edge can load it.
 */
import { PASSWORD_MAX_BYTES } from "../../protocol/limits.ts";
import { fromBase64, toBase64, toUtf8 } from "../../shared/bytes.ts";
import { toNfkc } from "../../shared/text/nfkc.ts";

/** OWASP's first recommended parameters for Argon2id: 19 MiB, two passes. */
export const PASSWORD_HASH_COST = {
  memoryCost: 19_456,
  timeCost: 2,
  parallelism: 1,
  hashLength: 32,
};
export type PasswordHashCost = typeof PASSWORD_HASH_COST;

interface PasswordHash {
  salt: Uint8Array;
  derived: Uint8Array;
  cost: PasswordHashCost;
}

/** The same keys typed on different systems can give different code points; NFKC makes them equal. */
export function normalizeSecret(secret: string): string {
  return toNfkc(secret);
}

/** No account and no tunnel has such a password, so it is not hashed. */
export function isPasswordTooLong(password: string): boolean {
  return toUtf8(normalizeSecret(password)).byteLength > PASSWORD_MAX_BYTES;
}

/**
 * What a stored hash may have been made of: the UTF-8 of the password, and for hashes of earlier versions only as many of
 * its bytes as the text has UTF-16 units. Both are the same for ASCII.
 */
export function listHashedBytes(secret: string): Uint8Array[] {
  const normalized = normalizeSecret(secret);
  const bytes = toUtf8(normalized);
  return bytes.length === normalized.length
    ? [bytes]
    : [bytes, bytes.subarray(0, normalized.length)];
}

/** @returns the PHC string, `$argon2id$v=19$m=19456,t=2,p=1$…`. */
export function formatPasswordHash({ salt, derived, cost }: PasswordHash): string {
  const { memoryCost, timeCost, parallelism } = cost;
  const encode = (bytes: Uint8Array) => toBase64(bytes).replaceAll("=", "");
  const parameters = `m=${memoryCost},t=${timeCost},p=${parallelism}`;
  return ["$argon2id$v=19", parameters, encode(salt), encode(derived)].join("$");
}

/** @throws Error unless the text is the PHC string of an Argon2id hash. */
export function parsePasswordHash(text: string): PasswordHash {
  const pattern = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([^$]+)\$([^$]+)$/;
  const [, memory, time, parallelism, encodedSalt = "", encodedHash = ""] =
    pattern.exec(text) ?? [];
  const salt = fromBase64(encodedSalt);
  const derived = fromBase64(encodedHash);
  if (memory === undefined || !salt || !derived) throw new Error("a password hash is damaged");
  const cost = {
    memoryCost: Number(memory),
    timeCost: Number(time),
    parallelism: Number(parallelism),
    hashLength: derived.length,
  };
  return { salt, derived, cost };
}
