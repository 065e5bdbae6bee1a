/** Encrypts stored secrets again with the current key, so that earlier keys can be removed. */
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
  listMfaSecretsUnderOtherKeys,
  replaceMfaSecret,
  type EncryptedMfaSecret,
} from "../store/accounts/mfa-secrets.ts";

/** Does nothing while there is one key: all secrets are encrypted with it. */
export async function reencryptSecrets(config: Config, db: Database): Promise<void> {
  if (config.ENCRYPTION_KEY.length === 1) return;
  const prefix = await getCurrentKeyPrefix(config);
  const accounts = await reencryptAll(
    (after: EncryptedMfaSecret | undefined) =>
      listMfaSecretsUnderOtherKeys(db, prefix, after?.userId),
    (secret) => reencryptAccount(config, db, secret),
    ({ userId }) => ({ userId }),
  );
  const receivers = await reencryptAll(
    (after: EncryptedReceiver | undefined) => listReceiversUnderOtherKeys(db, prefix, after?.id),
    (receiver) => reencryptReceiver(config, db, receiver),
    ({ id }) => ({ receiverId: id }),
  );
  const secrets = accounts + receivers;
  if (secrets > 0) log("info", "secrets_reencrypted", { secrets });
}

/** @returns how many secrets were encrypted again. */
async function reencryptAll<Row>(
  list: (after: Row | undefined) => Promise<Row[]>,
  reencrypt: (row: Row) => Promise<void>,
  toLogFields: (row: Row) => object,
): Promise<number> {
  let reencrypted = 0;
  let batch: Row[] = [];
  do {
    batch = await list(batch.at(-1));
    for (const row of batch) {
      try {
        await reencrypt(row);
        reencrypted++;
      } catch (error) {
        // A secret that no key can decrypt must not prevent the re-encryption of the others.
        log("error", "secret_unreadable", { ...toLogFields(row), cause: describeError(error) });
      }
    }
  } while (batch.length === REENCRYPTION_BATCH_ROWS);
  return reencrypted;
}

async function reencryptAccount(
  config: Config,
  db: Database,
  secret: EncryptedMfaSecret,
): Promise<void> {
  const text = await decrypt(config, TOTP_SECRET_PURPOSE, secret.encrypted);
  await replaceMfaSecret(db, secret, await encrypt(config, TOTP_SECRET_PURPOSE, text));
}

async function reencryptReceiver(
  config: Config,
  db: Database,
  receiver: EncryptedReceiver,
): Promise<void> {
  const reencrypt = async (encrypted: string) =>
    encryptWebhookSecret(config, await decryptWebhookSecret(config, encrypted));
  const { secret, previousSecret } = receiver;
  await replaceReceiverSecrets(db, receiver, {
    secret: await reencrypt(secret),
    previousSecret: previousSecret === null ? null : await reencrypt(previousSecret),
  });
}
