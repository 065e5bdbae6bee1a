/**
 * The cookie of a session, `qnt_refresh`. Pages of tunnels can be on the same site as this service, and a page can set
 * cookies for its whole site. So a browser could send the cookie of an attacker, whose account its user would then use.
 * Two cookies of the name are refused, and where the scheme is https, a second cookie binds the first: browsers accept
 * the prefix `__Host-` only from this very host.
 */
import { setCookie } from "hono/cookie";
import { REFRESH_TOKEN_MS } from "../../limits.ts";
import {
  deriveBinding,
  verifyBinding,
  verifyRefreshToken,
  type RefreshToken,
} from "../../identity/tokens/refresh-tokens.ts";
import type { ApiContext } from "../route.ts";

const REFRESH_COOKIE = "qnt_refresh";
const BINDING_COOKIE = "__Host-qnt_binding";

/** "not_own": this browser may have been given the cookie by another host, so it must not be touched. */
export async function readRefreshCookie(c: ApiContext): Promise<RefreshToken | "not_own" | null> {
  const [text, ...others] = readCookies(c, REFRESH_COOKIE);
  if (others.length > 0) return "not_own";
  const token = await verifyRefreshToken(c.var.config, text ?? "");
  if (!token || !isBindingRequired(c)) return token;
  const bindings = readCookies(c, BINDING_COOKIE);
  const isBound = bindings.length === 1 && (await verifyBinding(c.var.config, token, bindings[0]!));
  return isBound ? token : "not_own";
}

/** A program keeps its own cookies, and no page can add to them. Browsers send one of these headers with each POST. */
function isBindingRequired(c: ApiContext): boolean {
  const isBrowser =
    c.req.header("origin") !== undefined || c.req.header("sec-fetch-site") !== undefined;
  return isSecure(c) && isBrowser;
}

/** All values of a name. The usual parsers return the first one and hide the others. */
function readCookies(c: ApiContext, name: string): string[] {
  return (c.req.header("cookie") ?? "").split(";").flatMap((pair) => {
    const [key = "", ...value] = pair.split("=");
    return key.trim() === name ? [value.join("=").trim()] : [];
  });
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
  const attributes = { httpOnly: true, sameSite: "Lax", secure, maxAge } as const;
  setCookie(c, REFRESH_COOKIE, refresh, { ...attributes, path: "/auth" });
  if (secure) setCookie(c, BINDING_COOKIE, binding, { ...attributes, path: "/" });
}

function isSecure(c: ApiContext): boolean {
  return c.var.config.PUBLIC_SCHEME === "https";
}
