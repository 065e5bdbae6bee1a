/** How providers are called: they are the operator's choice, so without TLS where the setting says `http://`. */
import {
  allowInsecureRequests,
  customFetch,
  OperationProcessingError,
  ResponseBodyError,
} from "oauth4webapi";
import type { Env } from "../../env.ts";
import { callOperatorService } from "../../operator-network.ts";

/** One call to a provider, its body included. */
export const PROVIDER_CALL_MAX_MS = 10_000;
export const PROVIDER_ANSWER_MAX_BYTES = 256 * 1024;

/** Options for the calls of oauth4webapi. @param configured the address in the settings. */
export function buildCallOptions(env: Pick<Env, "OPERATOR_NETWORK">, configured: URL) {
  return {
    [allowInsecureRequests]: configured.protocol === "http:",
    [customFetch]: (url: string, init: RequestInit) => callOperatorService(env, url, init, BOUNDS),
    // Code hosts refuse requests that don't say who they are.
    headers: { "user-agent": "Underpass" },
  };
}

const BOUNDS = { maxMs: PROVIDER_CALL_MAX_MS, maxBytes: PROVIDER_ANSWER_MAX_BYTES };

const ERROR_CODE_MAX_CHARS = 100;
const REFUSED_CODE = ["invalid_grant", "bad_verification_code"];

/** Whether a provider says that a code is not, or no longer, good. Code hosts say so with status 200. */
export function isCodeRejected(failure: unknown): boolean {
  if (failure instanceof ResponseBodyError) return REFUSED_CODE.includes(failure.error);
  if (!(failure instanceof OperationProcessingError)) return false;
  const { body } = (failure.cause ?? {}) as { body?: { error?: unknown } };
  return typeof body?.error === "string" && REFUSED_CODE.includes(body.error);
}

/** For the log. Neither causes nor bodies: tokens are among what they hold. */
export function describeProviderError(failure: unknown): string {
  if (!(failure instanceof Error)) return "not an error";
  const { name, message } = failure;
  if (failure instanceof ResponseBodyError) {
    // `invalid_client`, most of all: the operator's settings are wrong.
    return `${name}: the provider says ${failure.error.slice(0, ERROR_CODE_MAX_CHARS)}`;
  }
  return failure instanceof OperationProcessingError
    ? `${name}: ${message} (${failure.code})`
    : `${name}: ${message}`;
}
