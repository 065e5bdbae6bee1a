/** How providers are called. The operator chooses them, so a setting with `http://` is called without TLS. */
import {
  allowInsecureRequests,
  customFetch,
  OperationProcessingError,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
} from "oauth4webapi";
import type { Env } from "../../env.ts";
import { fetchConfiguredService } from "../../operator-network.ts";

/** One call to a provider, its body included. */
const PROVIDER_CALL_MAX_MS = 10_000;
export const PROVIDER_ANSWER_MAX_BYTES = 256 * 1024;

/** Options for the calls of oauth4webapi. @param configured the URL in the settings. */
export function buildCallOptions(env: Pick<Env, "OPERATOR_NETWORK">, configured: URL) {
  return {
    [allowInsecureRequests]: configured.protocol === "http:",
    [customFetch]: (url: string, init: RequestInit) =>
      fetchConfiguredService(env, url, init, BOUNDS),
    // Code hosts reject requests without a user agent.
    headers: { "user-agent": "Underpass" },
  };
}

const BOUNDS = { maxMs: PROVIDER_CALL_MAX_MS, maxBytes: PROVIDER_ANSWER_MAX_BYTES };

const ERROR_CODE_MAX_CHARS = 100;
const REJECTED_CODE_ERRORS = ["invalid_grant", "bad_verification_code"];

/** Whether the provider rejected an authorization code as invalid or expired. Code hosts do so with status 200. */
export function isCodeRejected(failure: unknown): boolean {
  if (failure instanceof ResponseBodyError) return REJECTED_CODE_ERRORS.includes(failure.error);
  if (!(failure instanceof OperationProcessingError)) return false;
  const { body } = (failure.cause ?? {}) as { body?: { error?: unknown } };
  return typeof body?.error === "string" && REJECTED_CODE_ERRORS.includes(body.error);
}

/** For the log. Without causes and bodies, which can contain tokens. */
export function describeProviderError(failure: unknown): string {
  if (failure instanceof ResponseBodyError) {
    // Usually `invalid_client`: the operator's settings are wrong.
    return `the provider answered ${failure.error.slice(0, ERROR_CODE_MAX_CHARS)}`;
  }
  if (failure instanceof WWWAuthenticateChallengeError) {
    // RFC 6749 §5.2: also a wrong client secret.
    return `the provider answered with status ${failure.status}: it does not accept the credentials`;
  }
  // The names of the library's classes are shortened in the bundle.
  if (failure instanceof OperationProcessingError) return `${failure.message} (${failure.code})`;
  return failure instanceof Error ? `${failure.name}: ${failure.message}` : "not an error";
}
