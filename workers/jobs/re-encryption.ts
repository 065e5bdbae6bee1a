/** Brings what is kept sealed under the key that seals now, so that the earlier ones can be dropped. */
import { REENCRYPTION_BATCH_ROWS } from "../limits.ts";
import type { Config } from "../config/config.ts";
import { describeError } from "../errors.ts";
import { getCurrentKeyPrefix, encrypt, decrypt } from "../identity/encryption.ts";
import { TOTP_SECRET_PURPOSE } from "../identity/accounts/totp.ts";
import { decryptWebhookSecret, encryptWebhookSecret } from "../identity/webhook-secrets.ts";
import { log } from "../../shared/log.ts";
import type { Database } from "../store/database.ts";
import {
  listReceiversUnderOtherKeys,
  replaceReceiverSecrets,
  type EncryptedReceiver,
} from "../store/webhooks/receivers.ts";
import {
  listSecretsUnderOtherKeys,
  replaceEncryptedSecret,
  type EncryptedSecret,
} from "../store/encrypted-secrets.ts";

/** Looks at nothing while there is one key: whatever is sealed is under it. */
export async function reencryptSecrets(config: Config, db: Database): Promise<void> {
  if (config.ENCRYPTION_KEY.length === 1) return;
  const prefix = await getCurrentKeyPrefix(config);
  const ofAccounts = await reencryptAll(
    (after: EncryptedSecret | undefined) => listSecretsUnderOtherKeys(db, prefix, after?.userId),
    (secret) => reencryptAccount(config, db, secret),
    ({ userId }) => ({ userId }),
  );
  const ofReceivers = await reencryptAll(
    (after: EncryptedReceiver | undefined) => listReceiversUnderOtherKeys(db, prefix, after?.id),
    (receiver) => reencryptReceiver(config, db, receiver),
    ({ id }) => ({ receiverId: id }),
  );
  const secrets = ofAccounts + ofReceivers;
  if (secrets > 0) log("info", "secrets_resealed", { secrets });
}

/** @returns how many. */
async function reencryptAll<Row>(
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
  } while (batch.length === REENCRYPTION_BATCH_ROWS);
  return resealed;
}

async function reencryptAccount(config: Config, db: Database, secret: EncryptedSecret): Promise<void> {
  const text = await decrypt(config, TOTP_SECRET_PURPOSE, secret.sealed);
  await replaceEncryptedSecret(db, secret, await encrypt(config, TOTP_SECRET_PURPOSE, text));
}

async function reencryptReceiver(
  config: Config,
  db: Database,
  receiver: EncryptedReceiver,
): Promise<void> {
  const anew = async (sealed: string) =>
    encryptWebhookSecret(config, await decryptWebhookSecret(config, sealed));
  const { secret, previousSecret } = receiver;
  await replaceReceiverSecrets(db, receiver, {
    secret: await anew(secret),
    previousSecret: previousSecret === null ? null : await anew(previousSecret),
  });
}
