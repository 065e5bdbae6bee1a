/** What can be asked of any provider of third-party sign-in, and what it may say. */
import { calculatePKCECodeChallenge, type AuthorizationServer } from "oauth4webapi";
import { z } from "zod";
import type { ProviderName } from "../../../protocol/schemas/accounts/providers.ts";
import type { Config } from "../../config/config.ts";
import type { Attempt } from "./attempts.ts";
import { isEmailAddress, normalizeEmail } from "../accounts/emails.ts";

const PROVIDER_SUBJECT_MAX_CHARS = 255;

/** Both methods throw when the provider can't be reached or says what can't be believed. */
export interface Provider {
  name: ProviderName;
  /** What people know it by. */
  host: string;
  /**
   * Where the browser goes to sign in.
   * @param person `another`: not, without a word, whom the provider remembers.
   */
  authorizationUrl(attempt: Attempt, person?: "another"): Promise<URL>;
  /** @param answer what the browser came back with, of which the state is checked already. */
  identify(attempt: Attempt, answer: URLSearchParams): Promise<Identification>;
}

export type Identification =
  | { kind: "account"; account: ProviderAccount }
  /** The person, or the provider, said no. */
  | { kind: "denied"; error: string }
  /** The answer is none of this provider's, or its code is not good (any more). */
  | { kind: "invalid_answer" }
  | { kind: "email_not_verified" };

export interface ProviderAccount {
  /** Whose subjects these are. */
  issuer: string;
  subject: string;
  /** One that the provider knows to be this person's. null: there is none. */
  email: string | null;
}

export const Subject = z.string().min(1).max(PROVIDER_SUBJECT_MAX_CHARS);

/** From the settings alone: a Host header would send the code wherever it likes. */
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

/** @param error as it came: only the codes of RFC 6749 §4.1.2.1 are passed on. */
export function toDenial(error: string): Identification {
  return { kind: "denied", error: ERRORS.includes(error) ? error : "server_error" };
}

/**
 * Checked as it was given and normalised after that: in another order a foreign mailbox with look-alike
 * letters, such as the full-width ones, would become somebody's here.
 */
export function parseVerifiedEmail(email: unknown): string | null {
  return typeof email === "string" && isEmailAddress(email) ? normalizeEmail(email) : null;
}

/** @param isInsecure whether the operator configured this provider without TLS. */
export async function buildAuthorizationUrl(
  as: AuthorizationServer,
  attempt: Attempt,
  parameters: {
    client_id: string;
    redirect_uri: string;
    scope: string;
    nonce?: string;
    prompt?: string;
  },
  isInsecure: boolean,
): Promise<URL> {
  const url = URL.parse(as.authorization_endpoint ?? "");
  if (url?.protocol !== "https:" && !(isInsecure && url?.protocol === "http:")) {
    throw new Error("the provider names no authorization endpoint that can be used");
  }
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
