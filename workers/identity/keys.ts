/**
 * The keys of the service, imported once per isolate: signing keys for access tokens and for capability tokens,
 * each with its retired predecessors, and the keys derived from ENCRYPTION_KEY.
 */
import { calculateJwkThumbprint, type JWK, type CryptoKey } from "jose";
import { z } from "zod";
import type { Config } from "../config/config.ts";
import { fromBase64, toUtf8 } from "../../shared/bytes.ts";

const PrivateJwk = z.looseObject({
  kty: z.enum(["EC", "OKP"]),
  crv: z.string(),
  x: z.string(),
  y: z.string().optional(),
  d: z.string(),
  kid: z.string().min(1).optional(),
});
type PrivateJwk = z.output<typeof PrivateJwk>;
const PrivateJwks = z.union([
  z.object({ keys: z.array(PrivateJwk).min(1) }).transform(({ keys }) => keys),
  PrivateJwk.transform((key) => [key]),
]);

export interface SigningKeys {
  /** The first key of the set. */
  signer: { kid: string; key: CryptoKey };
  /** All keys of the set: a token that was signed with a retired key stays valid until it expires. */
  verifiers: ReadonlyMap<string, CryptoKey>;
  publicJwks: JWK[];
}

interface Algorithm {
  curve: string;
  import: { name: "ECDSA"; namedCurve: "P-256" } | { name: "Ed25519" };
  jose: "ES256" | "EdDSA";
}

const ES256: Algorithm = {
  curve: "P-256",
  import: { name: "ECDSA", namedCurve: "P-256" },
  jose: "ES256",
};
const ED25519: Algorithm = { curve: "Ed25519", import: { name: "Ed25519" }, jose: "EdDSA" };

/** For access tokens. */
export const getAccessTokenKeys = memoizePerConfig((config: Config) =>
  importSigningKeys(config.JWT_PRIVATE_KEY, ES256),
);

/** For capability tokens. */
export const getCapabilityTokenKeys = memoizePerConfig((config: Config) =>
  importSigningKeys(config.TOKEN_SIGNING_KEY, ED25519),
);

const getRootKeys = memoizePerConfig((config: Config) =>
  Promise.all(
    config.ENCRYPTION_KEY.map((key) => {
      const bytes = fromBase64(key)!;
      return crypto.subtle.importKey("raw", bytes, "HKDF", false, ["deriveKey"]);
    }),
  ),
);

/**
 * Each purpose has keys of its own: a value made for one purpose is worthless for another.
 *
 * @returns one for each key of ENCRYPTION_KEY. The first encrypts and hashes; the others only decrypt and verify.
 */
export async function deriveKeys(
  config: Config,
  purpose: string,
  use: "HMAC" | "AES-GCM",
): Promise<[CryptoKey, ...CryptoKey[]]> {
  const algorithm =
    use === "HMAC" ? { name: use, hash: "SHA-256", length: 256 } : { name: use, length: 256 };
  const derive = (masterKey: CryptoKey) =>
    crypto.subtle.deriveKey(
      {
        name: "HKDF",
        hash: "SHA-256",
        salt: new Uint8Array(),
        info: toUtf8(`underpass ${purpose}`),
      },
      masterKey,
      algorithm,
      false,
      use === "HMAC" ? ["sign", "verify"] : ["encrypt", "decrypt"],
    );
  const [current, ...earlier] = await Promise.all((await getRootKeys(config)).map(derive));
  return [current!, ...earlier];
}

async function importSigningKeys(setting: string, algorithm: Algorithm): Promise<SigningKeys> {
  const jwks = PrivateJwks.parse(JSON.parse(setting));
  const keys = await Promise.all(jwks.map((jwk) => importPair(jwk, algorithm)));
  const { kid, signer } = keys[0]!;
  return {
    signer: { kid, key: signer },
    verifiers: new Map(keys.map((pair) => [pair.kid, pair.verifier])),
    publicJwks: keys.map((pair) => pair.publicJwk),
  };
}

async function importPair({ kty, crv, x, y, d, kid: given }: PrivateJwk, algorithm: Algorithm) {
  if (crv !== algorithm.curve)
    throw new Error(`a signing key uses the curve ${crv} instead of ${algorithm.curve}`);
  const material = y === undefined ? { kty, crv, x } : { kty, crv, x, y };
  const kid = given ?? (await calculateJwkThumbprint(material));
  const [signer, verifier] = await Promise.all([
    crypto.subtle.importKey("jwk", { ...material, d }, algorithm.import, false, ["sign"]),
    crypto.subtle.importKey("jwk", material, algorithm.import, false, ["verify"]),
  ]);
  const publicJwk: JWK = { ...material, kid, use: "sig", alg: algorithm.jose };
  return { kid, signer, verifier, publicJwk };
}

/** A failure is not cached: `/ready` tries again. */
function memoizePerConfig<Value>(
  load: (config: Config) => Promise<Value>,
): (config: Config) => Promise<Value> {
  const loaded = new WeakMap<Config, Value>();
  return async (config) => {
    const known = loaded.get(config);
    if (known !== undefined) return known;
    const value = await load(config);
    loaded.set(config, value);
    return value;
  };
}
