/**
 * The secrets of a self-hosted server: keys come from the environment, or are generated once and stored in
 * `DATA_DIR/secrets.json`, which only its owner can read.
 */
import { createHash, createPrivateKey, generateKeyPairSync, randomBytes } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { calculateJwkThumbprint, type JWK } from "jose";
import { z } from "zod";
import { encryptionKeys } from "../workers/config/config.ts";
import { StartError } from "./errors.ts";
import { writePrivateFile } from "./files.ts";
import { parseJson } from "../shared/json.ts";
import { getErrorCode, getErrorMessage } from "../shared/error-message.ts";
import { readEnvironment, readSettings, SECRET_NAMES, type SecretName } from "./settings.ts";

const SecretsFile = z.object({
  ENCRYPTION_KEY: z.string().optional(),
  JWT_PRIVATE_KEY: z.string().optional(),
  TOKEN_SIGNING_KEY: z.string().optional(),
  RELAY_SECRET: z.string().optional(),
  METRICS_TOKEN: z.string().optional(),
  /** The Worker authenticates itself to the gateway with this secret. */
  gateway: z.string(),
  /** Password of the embedded PostgreSQL. */
  postgres: z.string(),
  /** Where `rotate` has added a key with which no server has started yet. */
  unused: z.array(z.enum(SECRET_NAMES)).optional(),
});

type SecretsFile = z.output<typeof SecretsFile>;

export interface Secrets extends Record<SecretName, string> {
  gateway: string;
  postgres: string;
}

type KeyShape = { kty: string; crv: string };
const KEY_SHAPES: Record<"JWT_PRIVATE_KEY" | "TOKEN_SIGNING_KEY", KeyShape> = {
  JWT_PRIVATE_KEY: { kty: "EC", crv: "P-256" },
  TOKEN_SIGNING_KEY: { kty: "OKP", crv: "Ed25519" },
};

const Jwk = z.looseObject({ kty: z.string(), crv: z.string(), d: z.string() });
const PrivateKeys = z.union([
  z.object({ keys: z.array(Jwk).min(1) }).transform(({ keys }) => keys),
  Jwk.transform((key) => [key]),
]);

/** @throws StartError when a key, or the file that stores them, can't be used. */
export async function loadSecrets(
  dataDir: string,
  provided: Partial<Record<SecretName, string>>,
): Promise<Secrets> {
  const path = getSecretsPath(dataDir);
  const stored = await readSecretsFile(path);
  const next: SecretsFile = stored ?? {
    gateway: randomBytes(32).toString("hex"),
    postgres: randomBytes(32).toString("hex"),
  };
  const missing = SECRET_NAMES.filter((name) => !provided[name] && !next[name]);
  for (const name of missing) next[name] = await generateSecret(name);
  if (!stored || missing.length > 0) {
    await writeSecretsFile(path, next);
  }
  const secrets = { ...next, ...provided } as Secrets;
  parseEncryptionKeys(secrets);
  for (const name of ["JWT_PRIVATE_KEY", "TOKEN_SIGNING_KEY"] as const) {
    parsePrivateKeys(name, secrets[name]);
  }
  return secrets;
}

/** Called when the database has accepted these keys: from then on it needs the new ones. */
export async function recordUsedKeys(dataDir: string, used: Secrets): Promise<void> {
  const path = getSecretsPath(dataDir);
  const stored = await readSecretsFile(path);
  if (!stored?.unused) return;
  // A key may have been added in the meantime.
  const unused = stored.unused.filter((name) => stored[name] !== used[name]);
  await writeSecretsFile(path, { ...stored, unused: unused.length > 0 ? unused : undefined });
}

/** @returns undefined when no server has used this directory. @throws StartError when the file can't be used. */
export async function readStoredSecrets(
  dataDir: string,
): Promise<Pick<Secrets, "postgres"> | undefined> {
  return readSecretsFile(getSecretsPath(dataDir));
}

function getSecretsPath(dataDir: string): string {
  return join(dataDir, "secrets.json");
}

async function writeSecretsFile(path: string, secrets: object): Promise<void> {
  await writePrivateFile(path, `${JSON.stringify(secrets, null, 2)}\n`);
}

async function readSecretsFile(path: string): Promise<SecretsFile | undefined> {
  let text: string;
  try {
    const { mode } = await stat(path);
    if ((mode & 0o077) !== 0) {
      throw new StartError(
        `${path} can be read by other users (mode ${(mode & 0o777).toString(8)}), so its keys may have leaked: ` +
          "if you are sure that they have not, run chmod 600 on it",
      );
    }
    text = await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof StartError) throw error;
    if (getErrorCode(error) === "ENOENT") return undefined;
    throw new StartError(`${path} can't be read: ${getErrorMessage(error)}`);
  }
  const parsed = SecretsFile.safeParse(parseJson(text));
  if (!parsed.success) {
    throw new StartError(
      `${path} is damaged: restore it from a backup, because its keys are stored nowhere else`,
    );
  }
  return parsed.data;
}

async function generateSecret(name: SecretName): Promise<string> {
  switch (name) {
    case "ENCRYPTION_KEY":
      return randomBytes(32).toString("base64");
    case "JWT_PRIVATE_KEY":
      return formatPrivateJwk(
        "ES256",
        generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey,
      );
    case "TOKEN_SIGNING_KEY":
      return formatPrivateJwk("EdDSA", generateKeyPairSync("ed25519").privateKey);
    case "RELAY_SECRET":
    case "METRICS_TOKEN":
      return randomBytes(32).toString("hex");
  }
}

async function formatPrivateJwk(
  alg: string,
  key: { export(options: { format: "jwk" }): object },
): Promise<string> {
  const jwk = key.export({ format: "jwk" }) as JWK;
  return JSON.stringify({ ...jwk, alg, use: "sig", kid: await calculateJwkThumbprint(jwk) });
}

function parsePrivateKeys(name: keyof typeof KEY_SHAPES, value: string): [JWK, ...JWK[]] {
  const { kty, crv } = KEY_SHAPES[name];
  const keys = PrivateKeys.safeParse(parseJson(value)).data ?? [];
  const usable = keys.every((key) => key.kty === kty && key.crv === crv && isPrivateKey(key));
  const [first, ...rest] = keys as JWK[];
  if (!first || !usable) {
    throw new StartError(
      `${name}: must be a private ${crv} key as a JWK, or a JWK set of such keys`,
    );
  }
  return [first, ...rest];
}

function parseEncryptionKeys({ ENCRYPTION_KEY }: Pick<Secrets, "ENCRYPTION_KEY">): string[] {
  const { data: keys, error } = encryptionKeys.safeParse(ENCRYPTION_KEY);
  if (!keys) throw new StartError(`ENCRYPTION_KEY: ${error.issues[0]?.message}`);
  return keys;
}

function isPrivateKey(jwk: Record<string, unknown>): boolean {
  try {
    createPrivateKey({ key: jwk, format: "jwk" });
    return true;
  } catch {
    return false;
  }
}

/**
 * Identifies a key without revealing it. The database stores it, so that a start with another key is noticed.
 * `accepted` also contains the fingerprints of older keys, because rotated keys stay valid until they are retired.
 */
export interface Fingerprint {
  name: SecretName;
  current: string;
  accepted: string[];
}

export async function computeFingerprints(secrets: Secrets): Promise<Fingerprint[]> {
  const encryption = parseEncryptionKeys(secrets).map((key) =>
    createHash("sha256").update(key, "base64").digest("hex"),
  );
  const signing = await Promise.all(
    parsePrivateKeys("TOKEN_SIGNING_KEY", secrets.TOKEN_SIGNING_KEY).map((key) =>
      calculateJwkThumbprint(key),
    ),
  );
  return [
    { name: "ENCRYPTION_KEY", current: encryption[0] ?? "", accepted: encryption },
    { name: "TOKEN_SIGNING_KEY", current: signing[0] ?? "", accepted: signing },
  ];
}

/**
 * Adds a new key in front of the stored ones (rotate), or removes all but the first (retire). The server reads the
 * result at its next start.
 *
 * @returns the number of keys.
 */
async function changeStoredKeys(name: SecretName, change: Change): Promise<number> {
  const { dataDir, secrets: provided } = readSettings(readEnvironment(".env"));
  if (provided[name] !== undefined) {
    throw new StartError(`${name}: set in the environment or .env, so it must be changed there`);
  }
  const path = getSecretsPath(dataDir);
  const stored = await readSecretsFile(path);
  const value = stored?.[name];
  if (!value) {
    throw new StartError(
      `${path} has no ${name}: start the server once with this DATA_DIR, which creates it`,
    );
  }
  const unused = new Set(stored.unused);
  if (change === "retire" && unused.has(name)) {
    throw new StartError(
      `${name}: no server has started with the new key, so only the earlier one can read the data: restart the server first`,
    );
  }
  const keys = splitKeys(name, value);
  const older = isSingle(name) ? [] : keys;
  const next = change === "rotate" ? [await generateSecret(name), ...older] : keys.slice(0, 1);
  if (next.length > 1) unused.add(name);
  await writeSecretsFile(path, {
    ...stored,
    [name]: joinKeys(name, next),
    unused: unused.size > 0 ? [...unused] : undefined,
  });
  return next.length;
}

const CHANGES = ["rotate", "retire"] as const;
type Change = (typeof CHANGES)[number];

/** Whether a new secret replaces the old one, because both sides of it are configured with one. */
function isSingle(name: SecretName): boolean {
  return name === "RELAY_SECRET" || name === "METRICS_TOKEN";
}

function splitKeys(name: SecretName, value: string): string[] {
  if (isSingle(name)) return [value];
  return name === "JWT_PRIVATE_KEY" || name === "TOKEN_SIGNING_KEY"
    ? parsePrivateKeys(name, value).map((key) => JSON.stringify(key))
    : parseEncryptionKeys({ ENCRYPTION_KEY: value });
}

function joinKeys(name: SecretName, keys: string[]): string {
  if (name === "ENCRYPTION_KEY") return keys.join(",");
  return keys.length === 1 ? keys[0]! : `{"keys":[${keys.join(",")}]}`;
}

/** `npm run --silent secret <name>` prints a new secret; with `rotate` or `retire` it changes the stored keys. */
async function main([provided, change]: string[]): Promise<string> {
  const name = SECRET_NAMES.find((known) => known === provided);
  if (!name) throw new StartError(`the first argument must be one of ${SECRET_NAMES.join(", ")}`);
  if (change === undefined) return generateSecret(name);
  const known = CHANGES.find((one) => one === change);
  if (!known) throw new StartError(`the second argument must be ${CHANGES.join(" or ")}`);
  const count = await changeStoredKeys(name, known);
  return `${name}: ${count} ${count === 1 ? "key" : "keys"}, used from the next start`;
}

if (import.meta.main) {
  try {
    console.log(await main(process.argv.slice(2)));
  } catch (error) {
    console.error(getErrorMessage(error));
    process.exitCode = 2;
  }
}
