/**
 * A sign-in that has been redirected to its provider and has not returned yet. It is stored, encrypted, in a cookie
 * of the browser that started it: abandoned sign-ins leave nothing behind, and no other browser can finish one.
 */
import { z } from "zod";
import { PROVIDER_SIGN_IN_MAX_MS } from "../../limits.ts";
import { ProviderName } from "../../../protocol/schemas/accounts/providers.ts";
import type { Config } from "../../config/config.ts";
import { randomSecret } from "../accounts/codes.ts";
import { equalInConstantTime } from "../../../shared/constant-time.ts";
import { encrypt, decrypt } from "../encryption.ts";

const SignInAttempt = z.object({
  provider: ProviderName,
  /** The provider returns it in its answer: it shows that the answer belongs to this sign-in. */
  state: z.string(),
  /** The ID token contains it: it shows that the token was issued for this sign-in. */
  nonce: z.string(),
  /** PKCE: it shows that the code is redeemed by the client that requested it. */
  verifier: z.string(),
  returnTo: z.string(),
  expiresAt: z.number(),
});
export type SignInAttempt = z.infer<typeof SignInAttempt>;

const AccountAttempt = SignInAttempt.extend({
  /** A hash of the sessions that the browser had. Earlier versions stored none: none matches. */
  sessions: z.string().default(""),
});
type AccountAttempt = z.infer<typeof AccountAttempt>;

/** The sign-in of a visitor of this tunnel, who needs no account. */
const VisitorAttempt = SignInAttempt.extend({
  tunnelId: z.uuid(),
  /** SHA-256 of the nonce in the browser's cookie for the tunnel's host. Earlier versions stored none: none matches. */
  browser: z.string().default(""),
});
export type VisitorAttempt = z.infer<typeof VisitorAttempt>;

/** The kinds of sign-in. An attempt of one kind is invalid for the other. */
export const ACCOUNT_SIGN_IN = { purpose: "provider sign-in", schema: AccountAttempt };
export const VISITOR_SIGN_IN = { purpose: "visitor sign-in", schema: VisitorAttempt };
interface AttemptKind<Stored extends SignInAttempt> {
  purpose: string;
  schema: z.ZodType<Stored>;
}

export function createAttempt(
  provider: ProviderName,
  returnTo: string,
  nowMs: number,
): SignInAttempt {
  return {
    provider,
    state: randomSecret(),
    nonce: randomSecret(),
    verifier: randomSecret(),
    returnTo,
    expiresAt: nowMs + PROVIDER_SIGN_IN_MAX_MS,
  };
}

export function encryptAttempt<Stored extends SignInAttempt>(
  config: Config,
  { purpose }: AttemptKind<Stored>,
  attempt: Stored,
): Promise<string> {
  return encrypt(config, purpose, JSON.stringify(attempt));
}

/** The provider's answer to an attempt, and the attempt that the browser has returned with it. */
interface ReturnedAttempt {
  encrypted: string;
  provider: ProviderName;
  state: string;
}

/** @returns null unless the answer belongs to this attempt, and the attempt has not expired. */
export async function decryptAttempt<Stored extends SignInAttempt>(
  config: Config,
  { purpose, schema }: AttemptKind<Stored>,
  { encrypted, provider, state }: ReturnedAttempt,
  nowMs: number,
): Promise<Stored | null> {
  const text = await decrypt(config, purpose, encrypted).catch(() => null);
  if (text === null) return null;
  const attempt = schema.parse(JSON.parse(text));
  const isExpected = attempt.provider === provider && equalInConstantTime(attempt.state, state);
  return isExpected && nowMs < attempt.expiresAt ? attempt : null;
}
