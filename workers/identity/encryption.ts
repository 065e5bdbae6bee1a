/**
 * Encryption of values that the service must read again: AES-256-GCM with a key derived from ENCRYPTION_KEY. Each
 * encrypted text names its key, so that keys can be rotated while texts of earlier keys still exist.
 *
 *     v1.<key id>.<nonce>.<ciphertext>      the last three in base64url
 */
import type { CryptoKey } from "jose";
import type { Config } from "../config/config.ts";
import { fromBase64Url, toBase64Url, toHex, toUtf8 } from "../../shared/bytes.ts";
import { deriveKeys } from "./keys.ts";

const NONCE_BYTES = 12;

/** @param purpose part of the key derivation: the text can be decrypted only for the same purpose. */
export async function encrypt(config: Config, purpose: string, text: string): Promise<string> {
  const [key] = await deriveKeys(config, purpose, "AES-GCM");
  const iv = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
  const ciphertext = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, toUtf8(text));
  const prefix = await getCurrentKeyPrefix(config);
  return `${prefix}${toBase64Url(iv)}.${toBase64Url(new Uint8Array(ciphertext))}`;
}

/** @throws Error when the text was encrypted with an unknown key or for another purpose, or was changed. */
export async function decrypt(config: Config, purpose: string, encrypted: string): Promise<string> {
  const [version, id, nonce, ciphertext] = encrypted.split(".");
  const iv = fromBase64Url(nonce ?? "");
  const bytes = fromBase64Url(ciphertext ?? "");
  if (version !== "v1" || !iv || !bytes)
    throw new Error("the text is not in the format of encrypted texts");
  const at = (await computeKeyIds(config)).indexOf(id ?? "");
  const key = (await deriveKeys(config, purpose, "AES-GCM"))[at];
  if (!key)
    throw new Error(
      `the text was encrypted with a key that ENCRYPTION_KEY does not contain (${id})`,
    );
  const plain = await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, bytes);
  return new TextDecoder().decode(plain);
}

/** The beginning of every text that was encrypted with the current key. */
export async function getCurrentKeyPrefix(config: Config): Promise<string> {
  const [current] = await computeKeyIds(config);
  return `v1.${current}.`;
}

/** Key ids identify a key without revealing anything about it. */
async function computeKeyIds(config: Config): Promise<string[]> {
  const macs = await computeKeyedHashes(config, "key id", "id");
  return macs.map((mac) => mac.slice(0, KEY_ID_CHARS));
}

const KEY_ID_CHARS = 8;

/**
 * Hashes that only this service can compute, for short secrets such as six digits. There is one with every key of
 * ENCRYPTION_KEY: a hash that was made with an earlier key still matches.
 */
export async function computeKeyedHashes(
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

/** For long random secrets, whose hashes can't be guessed. */
export async function sha256Hex(text: string): Promise<string> {
  return toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", toUtf8(text))));
}
