/** What vendors sign with: sealed wherever it rests, opened by whoever judges a delivery. */
import type { Config } from "../config/config.ts";
import { seal, unseal } from "./sealing.ts";

const PURPOSE = "webhook secret";

export function sealWebhookSecret(config: Config, secret: string): Promise<string> {
  return seal(config, PURPOSE, secret);
}

export function openWebhookSecret(config: Config, sealed: string): Promise<string> {
  return unseal(config, PURPOSE, sealed);
}
