/**
 * Signing in at a tunnel's identity gate: redirects a browser to the provider, and exchanges the ticket for a
 * visitor pass when it returns. Loaded by the first visitor who needs it.
 */
import { SIGN_IN_HEADER, type SignInStep } from "../../access/identity.ts";
import { formatPassCookie } from "../../access/authenticators/pass-cookie.ts";
import { getRequestTarget } from "../../protocol/request-target.ts";
import type { ErrorCode } from "../../protocol/errors.ts";
import { getAuthority, parseHost } from "../../protocol/hosts.ts";
import { RETURN_TO_MAX_CHARS, VISITOR_PASS_SECONDS } from "../limits.ts";
import { getConfig, publicUrl, type Config } from "../config/config.ts";
import type { Env } from "../env.ts";
import { wantsHtml } from "../error-page.ts";
import { errorPage, refusalPage } from "./pages.ts";

/** @param refusal the response of the tunnel's object, which names the next step of signing in. */
export async function handleSignIn(
  request: Request,
  env: Env,
  tunnelId: string,
  code: ErrorCode,
  refusal: Response,
): Promise<Response> {
  const config = getConfig(env);
  const step = refusal.headers.get(SIGN_IN_HEADER) as SignInStep;
  switch (step) {
    case "start":
      if (isNavigation(request)) {
        return redirect(buildStartUrl(config, tunnelId, getRequestTarget(request.url)));
      }
      return errorPage(request, code, {}, false);
    case "switch": {
      const href = buildStartUrl(config, tunnelId, getRequestTarget(request.url), "another");
      return refusalPage(request, code, refusal, { text: "Sign in with another account", href });
    }
    case "finish":
      return finishSignIn(request, env, tunnelId);
  }
}

async function finishSignIn(request: Request, env: Env, tunnelId: string): Promise<Response> {
  const config = getConfig(env);
  const host = parseHost(getAuthority(request.url)) ?? "";
  const ticket = new URL(request.url).searchParams.get("ticket") ?? "";
  // A HEAD request, as link previews send it, must not use the ticket.
  const isGet = request.method === "GET";
  const redeemed = isGet
    ? await env.INTERNAL_API.redeemVisitorTicket({ ticket, tunnelId, host })
    : null;
  if (!redeemed) {
    return errorPage(request, "invalid_token", {
      title: "This sign-in link is no longer valid",
      message: "A sign-in link works once, and only within a minute.",
      action: { text: "Sign in again", href: buildStartUrl(config, tunnelId, "/") },
    });
  }
  const response = redirect(publicUrl(config, host) + redeemed.target);
  const { PUBLIC_SCHEME: scheme } = config;
  response.headers.set("set-cookie", formatPassCookie(scheme, redeemed.pass, VISITOR_PASS_SECONDS));
  return response;
}

/** Whether a person navigates to the address, in contrast to a fetch by a page or a program. */
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

function buildStartUrl(
  config: Config,
  tunnelId: string,
  target: string,
  person?: "another",
): string {
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
