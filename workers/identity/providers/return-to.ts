/** Where a sign-in leads back to, as whoever made the link wishes it. */
import { RETURN_TO_MAX_CHARS } from "../../limits.ts";

/**
 * @param wish a path, or an address on `publicOrigin`.
 * @returns a path of this service with its query and fragment; `/` for whatever leads, or could be read to
 * lead, anywhere else.
 */
export function sanitizeReturnTo(wish: string, publicOrigin: string): string {
  const path = wish.startsWith(`${publicOrigin}/`) ? wish.slice(publicOrigin.length) : wish;
  if (wish.length > RETURN_TO_MAX_CHARS || !path.startsWith("/") || isAmbiguous(path)) return "/";
  // A path that is read differently once it is decoded is none that a link of ours has.
  const [written = ""] = path.split(/[?#]/, 1);
  const decoded = decode(written);
  if (decoded === null || isAmbiguous(decoded) || decoded.includes("@")) return "/";

  const url = URL.parse(path, publicOrigin);
  if (url?.origin !== publicOrigin || url.username !== "" || url.password !== "") return "/";
  const target = `${url.pathname}${url.search}${url.hash}`;
  return target.startsWith("//") || target.length > RETURN_TO_MAX_CHARS ? "/" : target;
}

/**
 * @param wish a target of a tunnel, or an address on its `origin`.
 * @returns the target, to be written behind that origin: then nothing in it can lead anywhere else, which
 * leaves every address that the tunnel can have; `/` for whatever is none.
 */
export function sanitizeTarget(origin: string, wish: string): string {
  const target = wish.startsWith(`${origin}/`) ? wish.slice(origin.length) : wish;
  const isTarget = target.startsWith("/") && !/[^!-~]/.test(target);
  return isTarget && target.length <= RETURN_TO_MAX_CHARS ? target : "/";
}

/** Parsers drop tabs and newlines, take a backslash for a slash, and two slashes for a host. */
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

/** What a sign-in tells the page that it leads back to. */
export type SignInOutcome = "oauth_token" | "mfa_challenge" | "oauth_error";
const OUTCOMES: SignInOutcome[] = ["oauth_token", "mfa_challenge", "oauth_error"];

/** An outcome that the link itself brought along is not ours, and goes. */
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
