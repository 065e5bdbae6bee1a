/** Time-based one-time passwords (RFC 6238), with the parameters that every authenticator app supports. */
import { hmac } from "@noble/hashes/hmac.js";
import { sha1 } from "@noble/hashes/legacy.js";
// The build without bundled hash functions: authenticators use only SHA-1, which comes from @noble/hashes.
import { HOTP, Secret, TOTP } from "otpauth/bare";
import { equalInConstantTime } from "../../../shared/constant-time.ts";

const TOTP_STEP_SECONDS = 30;
const TOTP_DIGITS = 6;
/** How many steps a clock may be off, in either direction. */
const TOTP_DRIFT_STEPS = 1;
/** The length that RFC 4226 §4 recommends, the shortest that it allows, and more than any app uses. */
const TOTP_SECRET_BYTES = 20;
const TOTP_SECRET_MIN_BYTES = 16;
const TOTP_SECRET_MAX_BYTES = 128;

/** The purpose that a confirmed secret is encrypted for. */
export const TOTP_SECRET_PURPOSE = "totp secret";

const ISSUER = "Underpass";
const ALGORITHM = "SHA1";

/** @returns base32, as authenticator apps accept it. */
export function generateTotpSecret(): string {
  return new Secret({ size: TOTP_SECRET_BYTES }).base32;
}

/** The URI in the secret's QR code. */
export function buildTotpUri(secret: string, email: string): string {
  const form = { algorithm: ALGORITHM, digits: TOTP_DIGITS, period: TOTP_STEP_SECONDS };
  return new TOTP({ ...form, issuer: ISSUER, label: email, secret }).toString();
}

/** @returns the secret in canonical base32, or null when it is not valid. */
export function parseTotpSecret(text: string): string | null {
  if (!/^[A-Z2-7 ]+=*$/i.test(text)) return null;
  const secret = Secret.fromBase32(text);
  const { length } = secret.bytes;
  return length >= TOTP_SECRET_MIN_BYTES && length <= TOTP_SECRET_MAX_BYTES ? secret.base32 : null;
}

export function generateTotpCode(secret: string, step: number): string {
  return HOTP.generate({
    secret: Secret.fromBase32(secret),
    algorithm: ALGORITHM,
    digits: TOTP_DIGITS,
    counter: step,
    hmac: (_algorithm, key, message) => hmac(sha1, key, message),
  });
}

export function getTotpStep(nowMs: number): number {
  return Math.floor(nowMs / 1000 / TOTP_STEP_SECONDS);
}

/**
 * The time step that the code belongs to, or null when it belongs to none that is accepted now. All steps are compared,
 * so that the duration does not reveal which one matched.
 */
export function findTotpStep(secret: string, code: string, nowMs: number): number | null {
  const current = getTotpStep(nowMs);
  let found: number | null = null;
  for (let step = current - TOTP_DRIFT_STEPS; step <= current + TOTP_DRIFT_STEPS; step++) {
    if (equalInConstantTime(generateTotpCode(secret, step), code)) found = step;
  }
  return found;
}
