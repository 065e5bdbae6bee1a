/**
 * A sign-in that has gone to its provider and is expected back. It waits, sealed, in a cookie of the browser
 * that started it: nothing is stored for those who never come back, and no other browser can finish it.
 */
import { z } from "zod";
import { PROVIDER_SIGN_IN_MAX_MS } from "../../protocol/limits.ts";
import { ProviderName } from "../../protocol/resources/providers.ts";
import type { Config } from "../config.ts";
import { randomSecret } from "./codes.ts";
import { equalInConstantTime, seal, unseal } from "./sealing.ts";

const PURPOSE = "provider sign-in";

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

export function newAttempt(provider: ProviderName, returnTo: string, now: number): Attempt {
  return {
    provider,
    state: randomSecret(),
    nonce: randomSecret(),
    verifier: randomSecret(),
    returnTo,
    expiresAt: now + PROVIDER_SIGN_IN_MAX_MS,
  };
}

export function sealAttempt(config: Config, attempt: Attempt): Promise<string> {
  return seal(config, PURPOSE, JSON.stringify(attempt));
}

/** @returns null unless this is the attempt that the answer is for, in time. */
export async function openAttempt(
  config: Config,
  sealed: string,
  answer: { provider: ProviderName; state: string },
  now: number,
): Promise<Attempt | null> {
  const text = await unseal(config, PURPOSE, sealed).catch(() => null);
  if (text === null) return null;
  const attempt = Attempt.parse(JSON.parse(text));
  const isExpected =
    attempt.provider === answer.provider && equalInConstantTime(attempt.state, answer.state);
  return isExpected && now < attempt.expiresAt ? attempt : null;
}
