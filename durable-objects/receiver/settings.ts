/** The settings with which a receiver accepts deliveries: a copy of its row. */
import type { Validator } from "../../protocol/schemas/webhooks.ts";

/** The version of a receiver only ever increases. */
export interface ReceiverSettings {
  version: number;
  validator: Validator;
  /** The newest first. The Worker that verifies a delivery decrypts them; the object never does. */
  secrets: EncryptedSecret[];
  /** How long a delivery is stored. */
  keepMs: number;
}

interface EncryptedSecret {
  /** The ciphertext. */
  sealed: string;
  /** ms since the epoch; null: no end. */
  untilMs: number | null;
}

/** @returns the encrypted secrets that a delivery may be signed with now. */
export function getActiveSecrets({ secrets }: ReceiverSettings, nowMs: number): string[] {
  return secrets
    .filter(({ untilMs }) => untilMs === null || untilMs > nowMs)
    .map(({ sealed }) => sealed);
}
