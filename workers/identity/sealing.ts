/**
 * What must be readable again, and only here: AES-256-GCM under a key derived from ENCRYPTION_KEY. Each
 * sealed text names its key, so that the setting can be changed while old ones are still around.
 *
 *     v1.<key id>.<nonce>.<ciphertext>      the last three in base64url
 */
import type { Config } from "../config.ts";
import { fromBase64, toBase64Url, toHex, utf8 } from "./encoding.ts";
import { derivedKey } from "./keys.ts";

const NONCE_BYTES = 12;

/** @param purpose what it is for; it opens for nothing else. */
export async function seal(config: Config, purpose: string, text: string): Promise<string> {
  const key = await derivedKey(config, purpose, "AES-GCM");
  const iv = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
  const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, utf8(text));
  return ["v1", await keyId(config), toBase64Url(iv), toBase64Url(new Uint8Array(sealed))].join(
    ".",
  );
}

/** @throws Error when it was sealed with another key, for another purpose, or changed since. */
export async function unseal(config: Config, purpose: string, sealed: string): Promise<string> {
  const [version, id, nonce, ciphertext] = sealed.split(".");
  const iv = fromBase64(nonce ?? "");
  const bytes = fromBase64(ciphertext ?? "");
  if (version !== "v1" || !iv || !bytes) throw new Error("not a sealed text");
  if (id !== (await keyId(config))) throw new Error(`sealed with another ENCRYPTION_KEY (${id})`);
  const key = await derivedKey(config, purpose, "AES-GCM");
  const plain = await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, bytes);
  return new TextDecoder().decode(plain);
}

/** Says which key it was without saying anything of the key. */
async function keyId(config: Config): Promise<string> {
  const key = await derivedKey(config, "key id", "HMAC");
  const mac = await crypto.subtle.sign("HMAC", key, utf8("id"));
  return toHex(new Uint8Array(mac)).slice(0, 8);
}

/** A hash that only this service can compute: short secrets, such as six digits, need one. */
export async function keyedHash(config: Config, purpose: string, text: string): Promise<string> {
  const key = await derivedKey(config, purpose, "HMAC");
  return toHex(new Uint8Array(await crypto.subtle.sign("HMAC", key, utf8(text))));
}

/** For secrets that are long and random: nothing is gained by guessing at their hash. */
export async function sha256Hex(text: string): Promise<string> {
  return toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", utf8(text))));
}

/** In a time that depends on the lengths only. */
export function equalInConstantTime(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let at = 0; at < a.length; at++) difference |= a.charCodeAt(at) ^ b.charCodeAt(at);
  return difference === 0;
}
