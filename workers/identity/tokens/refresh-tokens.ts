/**
 * Refresh tokens: `<session id>.<secret>.<proof>`. The next secret is derived from the last one by a keyed hash, so two
 * tabs that refresh at the same time get the same successor, and only hashes are stored. The proof shows that this
 * service issued a secret: only then is its reuse a sign of theft.
 */
import { z } from "zod";
import type { Config } from "../../config/config.ts";
import { toBase64Url } from "../../../shared/bytes.ts";
import { equalInConstantTime } from "../../../shared/constant-time.ts";
import { computeKeyedHashes, sha256Hex } from "../encryption.ts";

const SECRET_BYTES = 32;
const Uuid = z.uuid();

export interface RefreshToken {
  sessionId: string;
  /** The value of the cookie. */
  text: string;
  /** The value in the row. */
  hash: string;
}

export async function createRefreshToken(config: Config, sessionId: string): Promise<RefreshToken> {
  const secret = toBase64Url(crypto.getRandomValues(new Uint8Array(SECRET_BYTES)));
  const [token] = await deriveTokens(config, sessionId, secret);
  return token;
}

/**
 * The successors of a token, one for each key of ENCRYPTION_KEY. The first is issued now; the others match when another
 * tab of the same browser got its successor before the keys were rotated.
 */
export async function deriveSuccessors(
  config: Config,
  { sessionId, text }: RefreshToken,
): Promise<RefreshToken[]> {
  const secrets = await computeKeyedHashes(config, "refresh successor", text);
  return Promise.all(
    secrets.map(async (secret, at) => (await deriveTokens(config, sessionId, secret))[at]!),
  );
}

/** @returns null unless this service issued the token, with any of its keys. */
export async function verifyRefreshToken(
  config: Config,
  text: string,
): Promise<RefreshToken | null> {
  const [sessionId, secret] = text.split(".");
  if (secret === undefined || !Uuid.safeParse(sessionId).success) return null;
  const tokens = await deriveTokens(config, sessionId!, secret);
  return tokens.find((token) => equalInConstantTime(token.text, text)) ?? null;
}

/** The value of the cookie that binds the refresh cookie of a session. It stays the same when that one is replaced. */
export async function deriveBinding(config: Config, { sessionId }: RefreshToken): Promise<string> {
  const [binding] = await computeKeyedHashes(config, "refresh binding", sessionId);
  return binding;
}

export async function verifyBinding(
  config: Config,
  { sessionId }: RefreshToken,
  presented: string,
): Promise<boolean> {
  const bindings = await computeKeyedHashes(config, "refresh binding", sessionId);
  return bindings.some((binding) => equalInConstantTime(binding, presented));
}

/** One token for each key: they differ in their proof. */
async function deriveTokens(
  config: Config,
  sessionId: string,
  secret: string,
): Promise<[RefreshToken, ...RefreshToken[]]> {
  const proofs = await computeKeyedHashes(config, "refresh proof", `${sessionId}.${secret}`);
  const tokenWith = async (proof: string) => {
    const text = `${sessionId}.${secret}.${proof}`;
    return { sessionId, text, hash: await sha256Hex(text) };
  };
  const [current, ...earlier] = await Promise.all(proofs.map(tokenWith));
  return [current!, ...earlier];
}
