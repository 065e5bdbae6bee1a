/** What a receiver must know to take deliveries, as its row says. */
import type { Validator } from "../../protocol/schemas/webhooks.ts";

/** Versions of a receiver only ever grow. */
export interface ReceiverSettings {
  version: number;
  validator: Validator;
  /** The newest first. Sealed: whoever judges a delivery opens them, and this object never does. */
  secrets: EncryptedSecret[];
  /** How long a delivery is kept. */
  keepMs: number;
}

export interface EncryptedSecret {
  sealed: string;
  /** ms since the epoch; null: for good. */
  untilMs: number | null;
}

export function newerSettings(
  known: ReceiverSettings | undefined,
  offered: ReceiverSettings,
): ReceiverSettings {
  return known !== undefined && known.version >= offered.version ? known : offered;
}

/** Those that may have signed what comes in now. */
export function getActiveSecrets({ secrets }: ReceiverSettings, nowMs: number): string[] {
  return secrets
    .filter(({ untilMs }) => untilMs === null || untilMs > nowMs)
    .map(({ sealed }) => sealed);
}
