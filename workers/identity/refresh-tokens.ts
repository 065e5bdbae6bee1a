/**
 * Refresh secrets: `<session id>.<secret>.<proof>`. The next secret follows from the last one by a keyed
 * hash, so two tabs that refresh at the same moment are given the same successor and nothing readable is
 * stored. The proof shows that a secret was once ours: only then does its reuse speak of a theft.
 */
import { z } from "zod";
import type { Config } from "../config.ts";
import { toBase64Url } from "./encoding.ts";
import { equalInConstantTime, keyedHash, sha256Hex } from "./sealing.ts";

const SECRET_BYTES = 32;
const Uuid = z.uuid();

export interface RefreshToken {
  sessionId: string;
  /** What the cookie holds. */
  text: string;
  /** What the row holds. */
  hash: string;
}

export function firstRefreshToken(config: Config, sessionId: string): Promise<RefreshToken> {
  const secret = toBase64Url(crypto.getRandomValues(new Uint8Array(SECRET_BYTES)));
  return refreshToken(config, sessionId, secret);
}

export async function nextRefreshToken(config: Config, token: RefreshToken): Promise<RefreshToken> {
  const secret = await keyedHash(config, "refresh successor", token.text);
  return refreshToken(config, token.sessionId, secret);
}

/** @returns null unless the text is one that this service once gave out. */
export async function readRefreshToken(config: Config, text: string): Promise<RefreshToken | null> {
  const [sessionId, secret] = text.split(".");
  if (secret === undefined || !Uuid.safeParse(sessionId).success) return null;
  const token = await refreshToken(config, sessionId!, secret);
  return equalInConstantTime(token.text, text) ? token : null;
}

async function refreshToken(
  config: Config,
  sessionId: string,
  secret: string,
): Promise<RefreshToken> {
  const proof = await keyedHash(config, "refresh proof", `${sessionId}.${secret}`);
  const text = `${sessionId}.${secret}.${proof}`;
  return { sessionId, text, hash: await sha256Hex(text) };
}
