/** Brings what is kept sealed under the key that seals now, so that the earlier ones can be dropped. */
import { RESEAL_BATCH_ROWS } from "../limits.ts";
import type { Config } from "../config/config.ts";
import { describeError } from "../errors.ts";
import { currentSealPrefix, seal, unseal } from "../identity/sealing.ts";
import { TOTP_SECRET_PURPOSE } from "../identity/accounts/totp.ts";
import { openWebhookSecret, sealWebhookSecret } from "../identity/webhook-secrets.ts";
import { log } from "../../shared/log.ts";
import type { Database } from "../store/database.ts";
import {
  listReceiversUnderOtherKeys,
  replaceReceiverSecrets,
  type SealedReceiver,
} from "../store/webhooks/receivers.ts";
import {
  listSecretsUnderOtherKeys,
  replaceSealedSecret,
  type SealedSecret,
} from "../store/sealed-secrets.ts";

/** Looks at nothing while there is one key: whatever is sealed is under it. */
export async function resealSecrets(config: Config, db: Database): Promise<void> {
  if (config.ENCRYPTION_KEY.length === 1) return;
  const prefix = await currentSealPrefix(config);
  const ofAccounts = await resealAll(
    (after: SealedSecret | undefined) => listSecretsUnderOtherKeys(db, prefix, after?.userId),
    (secret) => resealAccount(config, db, secret),
    ({ userId }) => ({ userId }),
  );
  const ofReceivers = await resealAll(
    (after: SealedReceiver | undefined) => listReceiversUnderOtherKeys(db, prefix, after?.id),
    (receiver) => resealReceiver(config, db, receiver),
    ({ id }) => ({ receiverId: id }),
  );
  const secrets = ofAccounts + ofReceivers;
  if (secrets > 0) log("info", "secrets_resealed", { secrets });
}

/** @returns how many. */
async function resealAll<Row>(
  list: (after: Row | undefined) => Promise<Row[]>,
  reseal: (row: Row) => Promise<void>,
  nameOf: (row: Row) => object,
): Promise<number> {
  let resealed = 0;
  let batch: Row[] = [];
  do {
    batch = await list(batch.at(-1));
    for (const row of batch) {
      try {
        await reseal(row);
        resealed++;
      } catch (error) {
        // One that no key of the set opens must not keep the others from theirs.
        log("error", "secret_unreadable", { ...nameOf(row), cause: describeError(error) });
      }
    }
  } while (batch.length === RESEAL_BATCH_ROWS);
  return resealed;
}

async function resealAccount(config: Config, db: Database, secret: SealedSecret): Promise<void> {
  const text = await unseal(config, TOTP_SECRET_PURPOSE, secret.sealed);
  await replaceSealedSecret(db, secret, await seal(config, TOTP_SECRET_PURPOSE, text));
}

async function resealReceiver(
  config: Config,
  db: Database,
  receiver: SealedReceiver,
): Promise<void> {
  const anew = async (sealed: string) =>
    sealWebhookSecret(config, await openWebhookSecret(config, sealed));
  const { secret, previousSecret } = receiver;
  await replaceReceiverSecrets(db, receiver, {
    secret: await anew(secret),
    previousSecret: previousSecret === null ? null : await anew(previousSecret),
  });
}
