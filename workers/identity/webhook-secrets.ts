/** What vendors sign with: sealed wherever it rests, opened by whoever judges a delivery. */
import type { Config } from "../config/config.ts";
import { encrypt, decrypt } from "./encryption.ts";

const PURPOSE = "webhook secret";

export function encryptWebhookSecret(config: Config, secret: string): Promise<string> {
  return encrypt(config, PURPOSE, secret);
}

export function decryptWebhookSecret(config: Config, sealed: string): Promise<string> {
  return decrypt(config, PURPOSE, sealed);
}
