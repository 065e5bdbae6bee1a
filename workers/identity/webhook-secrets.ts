/** The secrets that vendors sign webhook deliveries with: stored encrypted, decrypted to verify a delivery. */
import type { Config } from "../config/config.ts";
import { encrypt, decrypt } from "./encryption.ts";

const PURPOSE = "webhook secret";

export function encryptWebhookSecret(config: Config, secret: string): Promise<string> {
  return encrypt(config, PURPOSE, secret);
}

export function decryptWebhookSecret(config: Config, encrypted: string): Promise<string> {
  return decrypt(config, PURPOSE, encrypted);
}
