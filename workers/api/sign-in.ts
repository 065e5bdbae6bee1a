/** What every way of signing in ends with: a session, its cookie, and the summary of the account. */
import { getCookie, setCookie } from "hono/cookie";
import { DEVICE_NAME_MAX_CHARS, REFRESH_TOKEN_MS } from "../../protocol/limits.ts";
import type { AccountSummary } from "../../protocol/resources.ts";
import { ApiError } from "../errors.ts";
import { signAccessToken } from "../identity/access-tokens.ts";
import { firstRefreshToken, type RefreshToken } from "../identity/refresh-tokens.ts";
import { openSession, type Principal } from "../store/sessions.ts";
import type { ApiContext } from "./context.ts";

const REFRESH_COOKIE = "qnt_refresh";

/** @throws ApiError forbidden when the account belongs to no organization. */
export async function signIn(c: ApiContext, userId: string): Promise<AccountSummary> {
  const { config, db, address } = c.var;
  const id = crypto.randomUUID();
  const refresh = await firstRefreshToken(config, id);
  const device = (c.req.header("user-agent") ?? "").slice(0, DEVICE_NAME_MAX_CHARS);
  const session = { id, userId, refreshHash: refresh.hash, device, ip: address };
  const principal = await openSession(db, session);
  if (!principal) throw new ApiError("forbidden", "This account belongs to no organization.");
  setRefreshCookie(c, refresh);
  const accessToken = await signAccessToken(config, {
    sub: userId,
    sid: id,
    org: principal.orgId,
    role: principal.role,
  });
  return accountSummary(principal, accessToken);
}

export function accountSummary(principal: Principal, accessToken: string): AccountSummary {
  return {
    access_token: accessToken,
    user: { id: principal.userId, email: principal.email },
    active_org: {
      id: principal.orgId,
      name: principal.orgName,
      slug: principal.orgSlug,
      role: principal.role,
      approval_status: principal.approvalStatus,
    },
    is_superadmin: principal.isSuperadmin,
  };
}

export function readRefreshCookie(c: ApiContext): string | undefined {
  return getCookie(c, REFRESH_COOKIE);
}

export function setRefreshCookie(c: ApiContext, token: RefreshToken): void {
  writeCookie(c, token.text, REFRESH_TOKEN_MS / 1000);
}

export function clearRefreshCookie(c: ApiContext): void {
  writeCookie(c, "", 0);
}

/** Without a Domain, so that no tunnel's host is ever sent it. */
function writeCookie(c: ApiContext, value: string, maxAge: number): void {
  setCookie(c, REFRESH_COOKIE, value, {
    path: "/auth",
    httpOnly: true,
    sameSite: "Lax",
    secure: c.var.config.PUBLIC_SCHEME === "https",
    maxAge,
  });
}
