/**
 * A sign-in that has gone to its provider and is expected back. It waits, sealed, in a cookie of the browser
 * that started it: nothing is stored for those who never come back, and no other browser can finish it.
 */
import { z } from "zod";
import { PROVIDER_SIGN_IN_MAX_MS } from "../../limits.ts";
import { ProviderName } from "../../../protocol/schemas/accounts/providers.ts";
import type { Config } from "../../config/config.ts";
import { randomSecret } from "../accounts/codes.ts";
import { equalInConstantTime } from "../../../shared/constant-time.ts";
import { encrypt, decrypt } from "../encryption.ts";

const Attempt = z.object({
  provider: ProviderName,
  /** Comes back in the provider's answer: that the two belong together. */
  state: z.string(),
  /** Comes back in the ID token: that it was made for this sign-in. */
  nonce: z.string(),
  /** PKCE: that whoever brings the code is who asked for it. */
  verifier: z.string(),
  returnTo: z.string(),
  expiresAt: z.number(),
});
export type Attempt = z.infer<typeof Attempt>;

/** Of a visitor of this tunnel, instead of somebody with an account. */
const VisitorAttempt = Attempt.extend({ tunnelId: z.uuid() });
export type VisitorAttempt = z.infer<typeof VisitorAttempt>;

/** What people sign in for. An attempt for one of these is none for another. */
export const ACCOUNT_SIGN_IN = { purpose: "provider sign-in", schema: Attempt };
export const VISITOR_SIGN_IN = { purpose: "visitor sign-in", schema: VisitorAttempt };
interface AttemptKind<Kept extends Attempt> {
  purpose: string;
  schema: z.ZodType<Kept>;
}

export function createAttempt(provider: ProviderName, returnTo: string, now: number): Attempt {
  return {
    provider,
    state: randomSecret(),
    nonce: randomSecret(),
    verifier: randomSecret(),
    returnTo,
    expiresAt: now + PROVIDER_SIGN_IN_MAX_MS,
  };
}

export function encryptAttempt<Kept extends Attempt>(
  config: Config,
  { purpose }: AttemptKind<Kept>,
  attempt: Kept,
): Promise<string> {
  return encrypt(config, purpose, JSON.stringify(attempt));
}

/** @returns null unless this is the attempt that the answer is for, in time. */
export async function decryptAttempt<Kept extends Attempt>(
  config: Config,
  { purpose, schema }: AttemptKind<Kept>,
  sealed: string,
  answer: { provider: ProviderName; state: string },
  now: number,
): Promise<Kept | null> {
  const text = await decrypt(config, purpose, sealed).catch(() => null);
  if (text === null) return null;
  const attempt = schema.parse(JSON.parse(text));
  const isExpected =
    attempt.provider === answer.provider && equalInConstantTime(attempt.state, answer.state);
  return isExpected && now < attempt.expiresAt ? attempt : null;
}
