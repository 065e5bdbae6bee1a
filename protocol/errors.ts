/**
 * Every error code that a caller or a visitor can get, and its HTTP status. Code elsewhere names an error code, never a
 * status.
 */
export const STATUS_BY_CODE = {
  invalid_request: 400,
  invalid_code: 400,
  invalid_token: 400,
  bad_policy: 400,
  invalid_cidr: 400,
  invalid_name: 400,
  unsupported_provider: 400,
  invalid_budget: 400,
  verification_failed: 400,
  invalid_host: 400,
  /** The device flow's responses to a poll that came too early, and to one after the user has refused (RFC 8628 §3.5). */
  authorization_pending: 400,
  slow_down: 400,
  access_denied: 400,
  unauthorized: 401,
  /** The session is valid, but its user must confirm their identity again (RFC 9470). */
  reauthentication_required: 401,
  upgrade_required: 402,
  billing_not_configured: 402,
  forbidden: 403,
  email_not_verified: 403,
  not_found: 404,
  tunnel_not_found: 404,
  method_not_allowed: 405,
  duplicate_name: 409,
  network_full: 409,
  server_not_registered: 409,
  conflict: 409,
  expired: 410,
  payload_too_large: 413,
  unsupported_media_type: 415,
  upgrade_expected: 426,
  rate_limited: 429,
  internal: 500,
  replay_disabled: 501,
  agent_offline: 502,
  origin_unreachable: 502,
  origin_failed: 502,
  not_ready: 503,
  provider_not_configured: 503,
  unavailable: 503,
  maintenance: 503,
  origin_timeout: 504,
} as const;

export type ErrorCode = keyof typeof STATUS_BY_CODE;
export const ERROR_CODES = Object.keys(STATUS_BY_CODE) as [ErrorCode, ...ErrorCode[]];

/** The `fields` of an error that names none: clients rely on the list of an `invalid_request`. */
export function getDefaultFields(code: ErrorCode): [] | undefined {
  return code === "invalid_request" ? [] : undefined;
}

export function isErrorCode(value: string): value is ErrorCode {
  return Object.hasOwn(STATUS_BY_CODE, value);
}

/** Holds an `ErrorCode` on every error response that the service itself made, and not the local server. */
export const ERROR_HEADER = "underpass-error";
export const REQUEST_ID_HEADER = "underpass-request-id";

/** The message of an error with the time until the next attempt: `Too many look-ups. Try again in 30 s.` */
export function formatRetryMessage(message: string, retryAfterSeconds: number): string {
  const reason = message.replace(/ Try again(?: later| in a moment)?\.$/, "");
  const wait =
    retryAfterSeconds < 120
      ? `${Math.ceil(retryAfterSeconds)} s`
      : `${Math.ceil(retryAfterSeconds / 60)} min`;
  return `${reason} Try again in ${wait}.`;
}
