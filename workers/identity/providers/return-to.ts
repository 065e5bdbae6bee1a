/** Where a sign-in leads back to. The value comes from a link, which an attacker may have made. */
import { RETURN_TO_MAX_CHARS } from "../../limits.ts";

/**
 * @param requested a path, or a URL on `publicOrigin`.
 * @returns a path of this service with its query and fragment; `/` for a value that leads, or that some parser
 * could read as leading, to another site.
 */
export function sanitizeReturnTo(requested: string, publicOrigin: string): string {
  const path = requested.startsWith(`${publicOrigin}/`)
    ? requested.slice(publicOrigin.length)
    : requested;
  if (requested.length > RETURN_TO_MAX_CHARS || !path.startsWith("/") || isAmbiguous(path))
    return "/";
  // No link of ours has a path whose meaning changes when it is decoded.
  const [written = ""] = path.split(/[?#]/, 1);
  const decoded = decode(written);
  if (decoded === null || isAmbiguous(decoded) || decoded.includes("@")) return "/";

  const url = URL.parse(path, publicOrigin);
  if (url?.origin !== publicOrigin || url.username !== "" || url.password !== "") return "/";
  const target = `${url.pathname}${url.search}${url.hash}`;
  return target.startsWith("//") || target.length > RETURN_TO_MAX_CHARS ? "/" : target;
}

/**
 * @param requested a request target of a tunnel, or a URL on its `origin`.
 * @returns the target, to be appended to that origin: so it cannot lead to another site, and every URL that the
 * tunnel can have is allowed. `/` when it is not a valid target.
 */
export function sanitizeTarget(origin: string, requested: string): string {
  const target = requested.startsWith(`${origin}/`) ? requested.slice(origin.length) : requested;
  const isTarget = target.startsWith("/") && !/[^!-~]/.test(target);
  return isTarget && target.length <= RETURN_TO_MAX_CHARS ? target : "/";
}

/** URL parsers drop tabs and newlines, read a backslash as a slash, and read a host after two slashes. */
function isAmbiguous(path: string): boolean {
  return /[\p{Cc}\p{Z}\\]|\/\//u.test(path);
}

function decode(path: string): string | null {
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  }
}

/** The query parameter that reports the result of a sign-in to the page it leads back to. */
export type SignInOutcome = "oauth_token" | "mfa_challenge" | "oauth_error";
const OUTCOMES: SignInOutcome[] = ["oauth_token", "mfa_challenge", "oauth_error"];

/** Removes outcomes that the link itself contained: they are not ours. */
export function buildReturnUrl(
  returnTo: string,
  publicOrigin: string,
  outcome: SignInOutcome,
  value: string,
): string {
  const url = new URL(returnTo, publicOrigin);
  for (const name of OUTCOMES) url.searchParams.delete(name);
  url.searchParams.set(outcome, value);
  return url.href;
}
