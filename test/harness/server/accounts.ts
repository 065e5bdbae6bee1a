/**
 * Accounts that have not signed up: their rows are inserted, with a password hash that costs almost nothing to verify.
 * The service itself verifies the address, creates the organization and checks the password at the login. Tests whose
 * subject is the sign-up use `TestApi.signUp`.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { argon2id } from "@noble/hashes/argon2.js";
import { encryptionKeys, type Config } from "../../../workers/config/config.ts";
import { computeKeyedHashes } from "../../../workers/identity/encryption.ts";

export const PASSWORD = "correct horse battery staple";

/** The least that Argon2 permits. The hash of a sign-up takes thousands of times as long to verify. */
const COST = { t: 1, m: 8, p: 1, dkLen: 32 };
const SALT = new Uint8Array(16);

const encode = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64").replaceAll("=", "");

const PASSWORD_HASH = [
  "$argon2id$v=19",
  `m=${COST.m},t=${COST.t},p=${COST.p}`,
  encode(SALT),
  encode(argon2id(PASSWORD, SALT, COST)),
].join("$");

/** Inserts an account and the code that verifies its address. */
const INSERT_ACCOUNT = `
  with account as (insert into users (email, password_hash) values ($1, $2) returning id)
  insert into email_codes (user_id, code_hash, expires_at)
  select id, $3, now() + interval '10 minutes' from account`;

/** @returns a configuration with only the encryption keys of the server, from its environment or its data directory. */
export async function readEncryptionConfig(
  dataDir: string,
  env: Record<string, string> = {},
): Promise<Config> {
  const stored = await readFile(join(dataDir, "secrets.json"), "utf8");
  const { ENCRYPTION_KEY } = JSON.parse(stored) as { ENCRYPTION_KEY?: string };
  return { ENCRYPTION_KEY: encryptionKeys.parse(env.ENCRYPTION_KEY ?? ENCRYPTION_KEY) } as Config;
}

/** @returns the code that verifies the address. */
export async function insertAccount(
  query: (text: string, values: unknown[]) => Promise<unknown>,
  config: Config,
  email: string,
): Promise<string> {
  const code = "123456";
  const [codeHash] = await computeKeyedHashes(config, "e-mail code", `${email} ${code}`);
  await query(INSERT_ACCOUNT, [email, PASSWORD_HASH, codeHash]);
  return code;
}
