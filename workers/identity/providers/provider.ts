/** The interface of all third-party sign-in providers, and the results of a sign-in. */
import { calculatePKCECodeChallenge } from "oauth4webapi";
import { z } from "zod";
import type { ProviderName } from "../../../protocol/schemas/accounts/providers.ts";
import { STORABLE_RULE } from "../../../protocol/schemas/scalars.ts";
import type { Config } from "../../config/config.ts";
import type { SignInAttempt } from "./attempts.ts";
import { isEmailAddress, normalizeEmail, splitEmail, toALabels } from "../accounts/emails.ts";

const PROVIDER_SUBJECT_MAX_CHARS = 255;

/** Both methods throw when the provider can't be reached or sends an invalid answer. */
export interface Provider {
  name: ProviderName;
  /** The provider's host, which people know it by. */
  host: string;
  /**
   * Where the browser goes to sign in.
   * @param account `another`: the provider must ask which account to use instead of using the one that it remembers.
   */
  authorizationUrl(attempt: SignInAttempt, account?: "another"): Promise<URL>;
  /** @param answer the query parameters of the callback, whose state has been checked. */
  identify(attempt: SignInAttempt, answer: URLSearchParams): Promise<Identification>;
}

export type Identification =
  | { kind: "account"; account: ProviderAccount }
  /** The person or the provider denied the sign-in. */
  | { kind: "denied"; error: string }
  /** The answer is not this provider's, or its code is invalid or expired. */
  | { kind: "invalid_answer" }
  | { kind: "email_not_verified" };

export interface ProviderAccount {
  /** The issuer within which the subject is unique. */
  issuer: string;
  subject: string;
  /** An address that the provider has verified. null: there is none. */
  email: string | null;
}

export const Subject = z
  .string()
  .min(1)
  .max(PROVIDER_SUBJECT_MAX_CHARS)
  .regex(...STORABLE_RULE);

/** Built from the settings alone: with the Host header, a caller could have the code sent anywhere. */
export function buildRedirectUri({ publicOrigin }: Config, name: ProviderName): string {
  return `${publicOrigin}/auth/oauth/${name}/callback`;
}

const ERRORS = [
  "invalid_request",
  "unauthorized_client",
  "access_denied",
  "unsupported_response_type",
  "invalid_scope",
  "server_error",
  "temporarily_unavailable",
];

/** @param error as received: only the codes of RFC 6749 §4.1.2.1 are passed on. */
export function toDenial(error: string): Identification {
  return { kind: "denied", error: ERRORS.includes(error) ? error : "server_error" };
}

/**
 * Checked first and normalized afterwards. In the other order, another person's mailbox with look-alike letters,
 * such as full-width ones, would become the address of an account here.
 */
export function parseVerifiedEmail(email: unknown): string | null {
  if (typeof email !== "string") return null;
  const [name, domain] = splitEmail(email);
  const address = name + toALabels(domain);
  return isEmailAddress(address) ? normalizeEmail(address) : null;
}

/** @param endpoint of the provider, which the browser is redirected to. */
export async function buildAuthorizationUrl(
  endpoint: string,
  attempt: SignInAttempt,
  parameters: {
    client_id: string;
    redirect_uri: string;
    scope: string;
    nonce?: string;
    prompt?: string;
  },
): Promise<URL> {
  const url = new URL(endpoint);
  const all = {
    ...parameters,
    response_type: "code",
    state: attempt.state,
    code_challenge: await calculatePKCECodeChallenge(attempt.verifier),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(all)) url.searchParams.set(name, value);
  return url;
}
