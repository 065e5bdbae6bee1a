/**
 * Cookies of the service's own host. Pages of tunnels can be on the same site as this service, and a page can set
 * cookies for its whole site. So a browser could send the cookie of an attacker, and its user would finish what the
 * attacker has begun. Where the scheme is https, the names have the prefix `__Host-`, which browsers accept only from
 * this very host. Two cookies of a name are refused in any case.
 */
import { setCookie } from "hono/cookie";
import type { ApiContext } from "./route.ts";

/** @returns null without the cookie, and when there is more than one: then another host has set one of them. */
export function readHostCookie(c: ApiContext, name: string): string | null {
  const [value, ...others] = readCookies(c, toHostName(c, name));
  return value !== undefined && others.length === 0 ? value : null;
}

/** Without a Domain attribute, so that browsers never send it to the host of a tunnel. */
export function setHostCookie(
  c: ApiContext,
  name: string,
  value: string,
  maxAgeSeconds: number,
): void {
  setCookie(c, toHostName(c, name), value, {
    path: "/",
    httpOnly: true,
    sameSite: "Lax",
    secure: isSecure(c),
    maxAge: maxAgeSeconds,
  });
}

export function clearHostCookie(c: ApiContext, name: string): void {
  setHostCookie(c, name, "", 0);
}

/** All values of a name. The usual parsers return the first one and hide the others. */
export function readCookies(c: ApiContext, name: string): string[] {
  return (c.req.header("cookie") ?? "").split(";").flatMap((pair) => {
    const [key = "", ...value] = pair.split("=");
    return key.trim() === name ? [value.join("=").trim()] : [];
  });
}

export function isSecure(c: ApiContext): boolean {
  return c.var.config.PUBLIC_SCHEME === "https";
}

function toHostName(c: ApiContext, name: string): string {
  return isSecure(c) ? `__Host-${name}` : name;
}
