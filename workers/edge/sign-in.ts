/**
 * A visitor who could get through a tunnel's identity gate by signing in: the way to the provider for
 * somebody with a browser, and what becomes of them on the way back. Loaded by the first such visitor.
 */
import { SIGN_IN_HEADER, type SignInStep } from "../../access/identity.ts";
import { formatPassCookie } from "../../access/pass-cookie.ts";
import { getRequestTarget } from "../../protocol/request-target.ts";
import type { ErrorCode } from "../../protocol/errors.ts";
import { getAuthority, parseHost } from "../../protocol/hosts.ts";
import { RETURN_TO_MAX_CHARS, VISITOR_PASS_SECONDS } from "../limits.ts";
import { configOf, publicUrl, type Config } from "../config/config.ts";
import type { Env } from "../env.ts";
import { wantsHtml } from "../error-page.ts";
import { errorPage, refusalPage } from "./pages.ts";

/** @param refusal of the tunnel's object, which says that signing in could help. */
export async function handleSignIn(
  request: Request,
  env: Env,
  tunnelId: string,
  code: ErrorCode,
  refusal: Response,
): Promise<Response> {
  const config = configOf(env);
  const step = refusal.headers.get(SIGN_IN_HEADER) as SignInStep;
  switch (step) {
    case "start":
      if (isNavigation(request)) {
        return redirect(startUrl(config, tunnelId, getRequestTarget(request.url)));
      }
      return errorPage(request, code, {}, false);
    case "switch": {
      const href = startUrl(config, tunnelId, getRequestTarget(request.url), "another");
      return refusalPage(request, code, refusal, { text: "Sign in as somebody else", href });
    }
    case "finish":
      return finishSignIn(request, env, tunnelId);
  }
}

async function finishSignIn(request: Request, env: Env, tunnelId: string): Promise<Response> {
  const config = configOf(env);
  const host = parseHost(getAuthority(request.url)) ?? "";
  const ticket = new URL(request.url).searchParams.get("ticket") ?? "";
  // Who only looks where a link leads must not use it up.
  const isVisit = request.method === "GET";
  const redeemed = isVisit ? await env.ROWS.redeemTicket({ ticket, tunnelId, host }) : null;
  if (!redeemed) {
    return errorPage(request, "invalid_token", {
      title: "This link is used up",
      message: "It led back from signing in, which works once and within a minute.",
      action: { text: "Sign in again", href: startUrl(config, tunnelId, "/") },
    });
  }
  const answer = redirect(publicUrl(config, host) + redeemed.target);
  const { PUBLIC_SCHEME: scheme } = config;
  answer.headers.set("set-cookie", formatPassCookie(scheme, redeemed.pass, VISITOR_PASS_SECONDS));
  return answer;
}

/** Somebody goes to an address, in contrast to a page or a program that fetches something. */
function isNavigation(request: Request): boolean {
  const { method, headers } = request;
  const mode = headers.get("sec-fetch-mode");
  return (
    (method === "GET" || method === "HEAD") &&
    wantsHtml(request) &&
    headers.get("upgrade") === null &&
    (mode === null || mode === "navigate")
  );
}

function startUrl(config: Config, tunnelId: string, target: string, person?: "another"): string {
  const url = new URL("/edge-auth/start", config.publicOrigin);
  url.searchParams.set("tunnel_id", tunnelId);
  url.searchParams.set("return_to", target.length > RETURN_TO_MAX_CHARS ? "/" : target);
  if (person === "another") url.searchParams.set("as_another", "1");
  return url.href;
}

function redirect(location: string): Response {
  const headers = { location, "cache-control": "no-store", "referrer-policy": "no-referrer" };
  return new Response(null, { status: 302, headers });
}
