/** Brings what accounts keep sealed under the key that seals now, so that the earlier ones can be dropped. */
import { RESEAL_BATCH_ROWS } from "../../protocol/limits.ts";
import type { Config } from "../config.ts";
import { describeError } from "../errors.ts";
import { currentSealPrefix, seal, unseal } from "../identity/sealing.ts";
import { TOTP_SECRET_PURPOSE } from "../identity/totp.ts";
import { log } from "../log.ts";
import type { Database } from "../store/client.ts";
import {
  listSecretsUnderOtherKeys,
  replaceSealedSecret,
  type SealedSecret,
} from "../store/sealed-secrets.ts";

/** Looks at nothing while there is one key: whatever is sealed is under it. */
export async function resealSecrets(config: Config, db: Database): Promise<void> {
  if (config.ENCRYPTION_KEY.length === 1) return;
  const prefix = await currentSealPrefix(config);
  let resealed = 0;
  let batch: SealedSecret[] = [];
  do {
    batch = await listSecretsUnderOtherKeys(db, prefix, batch.at(-1)?.userId);
    for (const secret of batch) if (await reseal(config, db, secret)) resealed++;
  } while (batch.length === RESEAL_BATCH_ROWS);
  if (resealed > 0) log("info", "secrets_resealed", { secrets: resealed });
}

async function reseal(config: Config, db: Database, secret: SealedSecret): Promise<boolean> {
  const { userId, sealed } = secret;
  let text: string;
  try {
    text = await unseal(config, TOTP_SECRET_PURPOSE, sealed);
  } catch (error) {
    // One that no key of the set opens must not keep the others from theirs.
    log("error", "secret_unreadable", { userId, cause: describeError(error) });
    return false;
  }
  await replaceSealedSecret(db, secret, await seal(config, TOTP_SECRET_PURPOSE, text));
  return true;
}
