/**
 * Argon2 for the passwords of accounts and for setting those of tunnels. On a self-hosted server the gateway's process
 * hashes, so that visitors, whom workerd serves with a single thread, do not wait for it. A hosted isolate hashes itself,
 * with pauses in between.
 */
import {
  PASSWORD_HASH_COST,
  formatPasswordHash,
  isPasswordTooLong,
  listHashedBytes,
  normalizeSecret,
  parsePasswordHash,
  type PasswordHashCost,
} from "../../../access/authenticators/password-hash.ts";
import { getAddressGroup } from "../../../shared/address-group.ts";
import { fromBase64, fromHex, toBase64, toUtf8 } from "../../../shared/bytes.ts";
import { equalBytesInConstantTime } from "../../../shared/constant-time.ts";
import { hasRateLimits, type Config } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import { hasGateway, postToGateway } from "../../gateway.ts";
import { computeKeyedHashes } from "../encryption.ts";
import { HashQueue } from "./hash-queue.ts";
import { DUMMY_HASH } from "./passwords.ts";

const SALT_BYTES = 16;
/** Between the starts of two hashes in an isolate: other requests run in between. */
const HASH_INTERVAL_MS = 100;

const queue = new HashQueue({
  now: () => Date.now(),
  wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
});

export interface HashCaller {
  env: Env;
  config: Config;
  address: string;
  /** The address of the account, or its id: one account's hashes do not fill the queue. */
  account: string;
}

/**
 * @returns the PHC string, `$argon2id$v=19$m=19456,t=2,p=1$…`.
 * @throws ApiError `unavailable` when too many hashes wait.
 */
export function hashPassword(caller: HashCaller, password: string): Promise<string> {
  return hashWithSalt(caller, password, crypto.getRandomValues(new Uint8Array(SALT_BYTES)));
}

/**
 * For sign-ups, which anyone can send for any address: the salt is derived from the address with a secret key, so that
 * equal passwords of competing sign-ups have equal hashes. They are compared without a second hash.
 */
export async function hashNewPassword(caller: HashCaller, password: string): Promise<string> {
  const [derived] = await computeKeyedHashes(caller.config, "sign-up salt", caller.account);
  return hashWithSalt(caller, password, fromHex(derived).subarray(0, SALT_BYTES));
}

/**
 * @param hash null where there is no account: verification takes as long, and returns false.
 * @throws ApiError `unavailable` when too many hashes wait.
 */
export async function verifyPassword(
  caller: HashCaller,
  hash: string | null,
  password: string,
): Promise<boolean> {
  if (isPasswordTooLong(password)) return false;
  const { salt, cost, derived } = parsePasswordHash(hash ?? DUMMY_HASH);
  for (const secret of listHashedBytes(password)) {
    const actual = await derive(caller, { secret, salt, cost });
    if (equalBytesInConstantTime(actual, derived)) return hash !== null;
  }
  return false;
}

async function hashWithSalt(
  caller: HashCaller,
  password: string,
  salt: Uint8Array,
): Promise<string> {
  const secret = toUtf8(normalizeSecret(password));
  const derived = await derive(caller, { secret, salt, cost: PASSWORD_HASH_COST });
  return formatPasswordHash({ salt, derived, cost: PASSWORD_HASH_COST });
}

function derive(
  { env, config, address, account }: HashCaller,
  { secret, salt, cost }: { secret: Uint8Array; salt: Uint8Array; cost: PasswordHashCost },
): Promise<Uint8Array> {
  const claim = { source: getAddressGroup(address), account };
  const limits = {
    pauseMs: hasGateway(env) ? 0 : HASH_INTERVAL_MS,
    isLimited: hasRateLimits(config),
  };
  return queue.run(claim, limits, async () => {
    if (hasGateway(env)) {
      const request = { secret: toBase64(secret), salt: toBase64(salt), ...cost };
      return readHash(await postToGateway(env, "/argon2", request));
    }
    const { deriveHash } = await import("../../../access/authenticators/argon2.ts");
    return deriveHash(secret, salt, cost);
  });
}

async function readHash(response: Response): Promise<Uint8Array> {
  if (!response.ok) throw new Error(`the gateway answered a hash with ${response.status}`);
  const { hash } = await response.json<{ hash: string }>();
  return fromBase64(hash)!;
}
