/**
 * What must be readable again, and only here: AES-256-GCM under a key derived from ENCRYPTION_KEY. Each
 * sealed text names its key, so that a new one can take over while texts of the earlier ones are around.
 *
 *     v1.<key id>.<nonce>.<ciphertext>      the last three in base64url
 */
import type { Config } from "../config/config.ts";
import { fromBase64, toBase64Url, toHex, toUtf8 } from "../../shared/bytes.ts";
import { deriveKeys } from "./keys.ts";

const NONCE_BYTES = 12;

/** @param purpose what it is for; it opens for nothing else. */
export async function encrypt(config: Config, purpose: string, text: string): Promise<string> {
  const [key] = await deriveKeys(config, purpose, "AES-GCM");
  const iv = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
  const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, toUtf8(text));
  const prefix = await getCurrentKeyPrefix(config);
  return `${prefix}${toBase64Url(iv)}.${toBase64Url(new Uint8Array(sealed))}`;
}

/** @throws Error when it was sealed with a key that is not ours, for another purpose, or changed since. */
export async function decrypt(config: Config, purpose: string, sealed: string): Promise<string> {
  const [version, id, nonce, ciphertext] = sealed.split(".");
  const iv = fromBase64(nonce ?? "");
  const bytes = fromBase64(ciphertext ?? "");
  if (version !== "v1" || !iv || !bytes) throw new Error("not a sealed text");
  const at = (await keyIds(config)).indexOf(id ?? "");
  const key = (await deriveKeys(config, purpose, "AES-GCM"))[at];
  if (!key) throw new Error(`sealed with another ENCRYPTION_KEY (${id})`);
  const plain = await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, bytes);
  return new TextDecoder().decode(plain);
}

/** How every text begins that was sealed with the key that seals now. */
export async function getCurrentKeyPrefix(config: Config): Promise<string> {
  const [current] = await keyIds(config);
  return `v1.${current}.`;
}

/** They say which key it was without saying anything of the key. */
async function keyIds(config: Config): Promise<string[]> {
  const macs = await keyedHashes(config, "key id", "id");
  return macs.map((mac) => mac.slice(0, KEY_ID_CHARS));
}

const KEY_ID_CHARS = 8;

/** A hash that only this service can compute: short secrets, such as six digits, need one. */
export async function keyedHash(config: Config, purpose: string, text: string): Promise<string> {
  const [hash] = await keyedHashes(config, purpose, text);
  return hash;
}

/** The same under every key of ENCRYPTION_KEY: what was hashed with an earlier one is still recognized. */
export async function keyedHashes(
  config: Config,
  purpose: string,
  text: string,
): Promise<[string, ...string[]]> {
  const keys = await deriveKeys(config, purpose, "HMAC");
  const hash = async (key: CryptoKey) =>
    toHex(new Uint8Array(await crypto.subtle.sign("HMAC", key, toUtf8(text))));
  const [current, ...earlier] = await Promise.all(keys.map(hash));
  return [current!, ...earlier];
}

/** For secrets that are long and random: nothing is gained by guessing at their hash. */
export async function sha256Hex(text: string): Promise<string> {
  return toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", toUtf8(text))));
}
