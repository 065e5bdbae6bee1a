/**
 * The cookie of a session, `qnt_refresh`. Its name has no prefix, so another host of the site could set it, and the browser's
 * user would use the account of an attacker. Two cookies of the name are refused, and where the scheme is https, a second
 * cookie that only this host can set binds the first.
 */
import { setCookie } from "hono/cookie";
import { REFRESH_TOKEN_MS } from "../../limits.ts";
import {
  deriveBinding,
  verifyBinding,
  verifyRefreshToken,
  type RefreshToken,
} from "../../identity/tokens/refresh-tokens.ts";
import { sha256Hex } from "../../identity/encryption.ts";
import { isSecure, readCookies, readHostCookie, setHostCookie } from "../host-cookies.ts";
import type { ApiContext } from "../route.ts";

const REFRESH_COOKIE = "qnt_refresh";
/** With its prefix `__Host-qnt_binding`. */
const BINDING_COOKIE = "qnt_binding";

/** "not_own": this browser may have been given the cookie by another host, so it must not be touched. */
export async function readRefreshCookie(c: ApiContext): Promise<RefreshToken | "not_own" | null> {
  const [text, ...others] = readCookies(c, REFRESH_COOKIE);
  if (others.length > 0) return "not_own";
  const token = await verifyRefreshToken(c.var.config, text ?? "");
  if (!token || !isBindingRequired(c)) return token;
  const binding = readHostCookie(c, BINDING_COOKIE) ?? "";
  return (await verifyBinding(c.var.config, token, binding)) ? token : "not_own";
}

export function hasRefreshCookie(c: ApiContext): boolean {
  return readCookies(c, REFRESH_COOKIE).length > 0;
}

/** A hash of all sessions whose cookies the browser sends, its own or not. It stays the same when a session is renewed. */
export function hashSessionIds(c: ApiContext): Promise<string> {
  const ids = readCookies(c, REFRESH_COOKIE).map((text) => text.split(".")[0]);
  return sha256Hex(ids.join(" "));
}

/** A program keeps its own cookies, and no page can add to them. Browsers send one of these headers with each POST. */
function isBindingRequired(c: ApiContext): boolean {
  const isBrowser =
    c.req.header("origin") !== undefined || c.req.header("sec-fetch-site") !== undefined;
  return isSecure(c) && isBrowser;
}

export async function setRefreshCookie(c: ApiContext, token: RefreshToken): Promise<void> {
  const binding = isSecure(c) ? await deriveBinding(c.var.config, token) : "";
  writeCookies(c, { refresh: token.text, binding, maxAge: REFRESH_TOKEN_MS / 1000 });
}

export function clearRefreshCookie(c: ApiContext): void {
  writeCookies(c, { refresh: "", binding: "", maxAge: 0 });
}

/** Without a Domain attribute, so that browsers never send them to the host of a tunnel. */
function writeCookies(
  c: ApiContext,
  { refresh, binding, maxAge }: { refresh: string; binding: string; maxAge: number },
): void {
  const secure = isSecure(c);
  const attributes = { path: "/auth", httpOnly: true, sameSite: "Lax", secure, maxAge } as const;
  setCookie(c, REFRESH_COOKIE, refresh, attributes);
  if (secure) setHostCookie(c, BINDING_COOKIE, binding, maxAge);
}
