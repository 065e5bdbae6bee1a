/**
 * The secret manager of a self-hosted server: keys come from the environment, or are made once and kept in
 * `DATA_DIR/secrets.json`, which only its owner can read.
 */
import { createHash, createPrivateKey, generateKeyPairSync, randomBytes } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { calculateJwkThumbprint, type JWK } from "jose";
import { z } from "zod";
import { encryptionKeys } from "../workers/config.ts";
import { messageOf, StartFailure } from "./failure.ts";
import { writePrivateFile } from "./files.ts";
import { SECRET_NAMES, type SecretName } from "./settings.ts";

const SecretsFile = z.object({
  ENCRYPTION_KEY: z.string().optional(),
  JWT_PRIVATE_KEY: z.string().optional(),
  TOKEN_SIGNING_KEY: z.string().optional(),
  /** What the Worker proves itself with to the gateway. */
  gateway: z.string(),
  /** Password of the embedded PostgreSQL. */
  postgres: z.string(),
});

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

/** @throws StartFailure when a key or the file that keeps them can't be used. */
export async function loadSecrets(
  dataDir: string,
  given: Partial<Record<SecretName, string>>,
): Promise<Secrets> {
  const path = join(dataDir, "secrets.json");
  const kept = await readSecretsFile(path);
  const next: z.output<typeof SecretsFile> = kept ?? {
    gateway: randomBytes(32).toString("hex"),
    postgres: randomBytes(32).toString("hex"),
  };
  const missing = SECRET_NAMES.filter((name) => !given[name] && !next[name]);
  for (const name of missing) next[name] = await generate(name);
  if (!kept || missing.length > 0) {
    await writePrivateFile(path, `${JSON.stringify(next, null, 2)}\n`);
  }
  const secrets = { ...next, ...given } as Secrets;
  encryptionKeysOf(secrets);
  for (const name of ["JWT_PRIVATE_KEY", "TOKEN_SIGNING_KEY"] as const) {
    parseKeys(name, secrets[name]);
  }
  return secrets;
}

async function readSecretsFile(path: string): Promise<z.output<typeof SecretsFile> | undefined> {
  let text: string;
  try {
    const { mode } = await stat(path);
    if ((mode & 0o077) !== 0) {
      throw new StartFailure(
        `${path} can be read by others (mode ${(mode & 0o777).toString(8)}): its keys may have leaked, ` +
          "make it 600 if you are sure that they have not",
      );
    }
    text = await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof StartFailure) throw error;
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw new StartFailure(`${path} can't be read: ${messageOf(error)}`);
  }
  const parsed = SecretsFile.safeParse(jsonOrUndefined(text));
  if (!parsed.success) {
    throw new StartFailure(
      `${path} is damaged: restore it from a backup, nothing else has its keys`,
    );
  }
  return parsed.data;
}

async function generate(name: SecretName): Promise<string> {
  switch (name) {
    case "ENCRYPTION_KEY":
      return randomBytes(32).toString("base64");
    case "JWT_PRIVATE_KEY":
      return privateJwk("ES256", generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey);
    case "TOKEN_SIGNING_KEY":
      return privateJwk("EdDSA", generateKeyPairSync("ed25519").privateKey);
  }
}

async function privateJwk(
  alg: string,
  key: { export(options: { format: "jwk" }): object },
): Promise<string> {
  const jwk = key.export({ format: "jwk" }) as JWK;
  return JSON.stringify({ ...jwk, alg, use: "sig", kid: await calculateJwkThumbprint(jwk) });
}

function parseKeys(name: keyof typeof KEY_SHAPES, value: string): [JWK, ...JWK[]] {
  const { kty, crv } = KEY_SHAPES[name];
  const keys = PrivateKeys.safeParse(jsonOrUndefined(value)).data ?? [];
  const usable = keys.every((key) => key.kty === kty && key.crv === crv && isPrivateKey(key));
  const [first, ...rest] = keys as JWK[];
  if (!first || !usable) {
    throw new StartFailure(`${name}: must be a private ${crv} key as a JWK, or a set of them`);
  }
  return [first, ...rest];
}

function encryptionKeysOf({ ENCRYPTION_KEY }: Secrets): string[] {
  const { data: keys, error } = encryptionKeys.safeParse(ENCRYPTION_KEY);
  if (!keys) throw new StartFailure(`ENCRYPTION_KEY: ${error.issues[0]?.message}`);
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

function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * What the database remembers of a key, to notice when it meets another one. `accepted` are those under
 * which the key was known before: rotated keys stay in the set for as long as they verify.
 */
export interface Fingerprint {
  name: SecretName;
  current: string;
  accepted: string[];
}

export async function fingerprints(secrets: Secrets): Promise<Fingerprint[]> {
  const encryption = encryptionKeysOf(secrets).map((key) =>
    createHash("sha256").update(key, "base64").digest("hex"),
  );
  const signing = await Promise.all(
    parseKeys("TOKEN_SIGNING_KEY", secrets.TOKEN_SIGNING_KEY).map((key) =>
      calculateJwkThumbprint(key),
    ),
  );
  return [
    { name: "ENCRYPTION_KEY", current: encryption[0] ?? "", accepted: encryption },
    { name: "TOKEN_SIGNING_KEY", current: signing[0] ?? "", accepted: signing },
  ];
}

/** `npm run --silent secret ENCRYPTION_KEY`: a new one, for the secrets of a hosted service. */
if (import.meta.main) {
  const name = SECRET_NAMES.find((known) => known === process.argv[2]);
  if (name) console.log(await generate(name));
  else {
    console.error(`say which: ${SECRET_NAMES.join(", ")}`);
    process.exitCode = 2;
  }
}
