/** Codes that people read from one place and type into another. */
import { toBase64Url } from "../../../shared/bytes.ts";

const EMAIL_CODE_DIGITS = 6;

/** Six digits, each as likely as any. */
export function randomEmailCode(): string {
  const span = 10 ** EMAIL_CODE_DIGITS;
  // The highest multiple of the span that fits: a remainder above it would favor low codes.
  const fair = Math.floor(2 ** 32 / span) * span;
  for (;;) {
    const [value] = crypto.getRandomValues(new Uint32Array(1));
    if (value! < fair) return String(value! % span).padStart(EMAIL_CODE_DIGITS, "0");
  }
}

/** No vowels, so that no code spells a word; no digits, so that none is mistaken for a letter. */
const LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const USER_CODE_CHARS = 8;

/** Eight letters, shown as `BCDF-GHJK`. */
export function randomUserCode(): string {
  return randomString(LETTERS, USER_CODE_CHARS);
}

export function formatUserCode(code: string): string {
  return `${code.slice(0, 4)}-${code.slice(4)}`;
}

/** Ignores case, spaces and hyphens. @returns null when it is not a user code. */
export function parseUserCode(typed: string): string | null {
  const code = typed.toUpperCase().replace(/[\s-]/g, "");
  return code.length === USER_CODE_CHARS && [...code].every((char) => LETTERS.includes(char))
    ? code
    : null;
}

/** Ignores case, spaces and hyphens. @returns the code as the server prints it: `2345-6789-ABCD-EFGH`. */
export function normalizeSetupCode(typed: string): string {
  const characters = typed.toUpperCase().replace(/[\s-]/g, "");
  return (characters.match(/.{1,4}/g) ?? []).join("-");
}

/** 256 random bits in base64url, for secrets that are never typed. */
export function randomSecret(): string {
  return toBase64Url(crypto.getRandomValues(new Uint8Array(32)));
}

const PASSWORD_ALPHABET = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const PASSWORD_CHARS = 20;

/** A generated password for a person who did not choose one. */
export function randomPassword(): string {
  return randomString(PASSWORD_ALPHABET, PASSWORD_CHARS);
}

export function randomString(alphabet: string, length: number): string {
  let text = "";
  const fair = 256 - (256 % alphabet.length);
  while (text.length < length) {
    const [byte] = crypto.getRandomValues(new Uint8Array(1));
    if (byte! < fair) text += alphabet[byte! % alphabet.length];
  }
  return text;
}
