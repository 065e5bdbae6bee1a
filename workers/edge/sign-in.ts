/**
 * Signing in at a tunnel's identity gate: redirects a browser to the provider, and exchanges the ticket for a
 * visitor pass when it returns. Loaded by the first visitor who needs it.
 *
 * A browser gets a nonce in a cookie when a sign-in begins, and the ticket is valid only together with that cookie. So a
 * link with the ticket of another person does not sign a visitor in as that person. A ticket that arrives in another browser
 * is used up: a link can make a visitor sign in for the browser of an attacker, who must not get hold of the ticket.
 */
import { SIGN_IN_HEADER, type SignInStep } from "../../access/identity.ts";
import {
  formatPassCookie,
  formatSignInCookie,
  readSignInNonce,
} from "../../access/authenticators/visitor-cookies.ts";
import { getRequestTarget } from "../../protocol/request-target.ts";
import { REQUEST_ID_HEADER } from "../../protocol/errors.ts";
import { getAuthority, parseHost } from "../../protocol/hosts.ts";
import { toBase64Url, toUtf8 } from "../../shared/bytes.ts";
import {
  PROVIDER_SIGN_IN_MAX_MS,
  RETURN_TO_MAX_CHARS,
  VISITOR_PASS_SECONDS,
  VISITOR_TICKET_MAX_MS,
} from "../limits.ts";
import { getConfig, publicUrl, type Config } from "../config/config.ts";
import type { Env } from "../env.ts";
import { wantsHtml } from "../html-error-page.ts";
import {
  createErrorPage,
  createRefusalPage,
  secureTransport,
  type TunnelRefusal,
} from "./error-pages.ts";

const SIGN_IN_NONCE_BYTES = 32;
/** As long as one sign-in can take: each start renews the cookie. */
const SIGN_IN_COOKIE_SECONDS = (PROVIDER_SIGN_IN_MAX_MS + VISITOR_TICKET_MAX_MS) / 1000;

/** @param refusal names the next step of signing in. */
export async function handleSignIn(
  request: Request,
  env: Env,
  tunnelId: string,
  refusal: TunnelRefusal,
): Promise<Response> {
  const config = getConfig(env);
  const { headers } = refusal.response;
  const step = headers.get(SIGN_IN_HEADER) as SignInStep;
  const target = getRequestTarget(request.url);
  switch (step) {
    case "start": {
      if (!isNavigation(request)) {
        const requestId = headers.get(REQUEST_ID_HEADER);
        return createErrorPage(request, env, refusal.code, { requestId, format: "json" });
      }
      const { href, cookie } = await beginSignIn(request, config, { tunnelId, target });
      return redirect(request, env, href, cookie);
    }
    case "switch": {
      const { href, cookie } = await beginSignIn(request, config, {
        tunnelId,
        target,
        asAnother: true,
      });
      const action = { text: "Sign in with another account", href };
      return withCookie(createRefusalPage(request, env, refusal, action), cookie);
    }
    case "finish": {
      const { href, cookie } = await beginSignIn(request, config, { tunnelId, target: "/" });
      return (
        (await finishSignIn(request, env, tunnelId)) ??
        withCookie(refuseTicket(request, env, href), cookie)
      );
    }
  }
}

/** @returns null for a ticket that is not valid in this browser. */
async function finishSignIn(
  request: Request,
  env: Env,
  tunnelId: string,
): Promise<Response | null> {
  const config = getConfig(env);
  const { PUBLIC_SCHEME: scheme } = config;
  const host = parseHost(getAuthority(request.url)) ?? "";
  const ticket = new URL(request.url).searchParams.get("ticket") ?? "";
  // A HEAD request, as link previews send it, must not use the ticket.
  if (request.method !== "GET") return null;
  const nonce = readSignInNonce(request.headers.get("cookie") ?? "", scheme);
  const browser = nonce === null ? null : await hashNonce(nonce);
  const redeemed = await env.INTERNAL_API.redeemVisitorTicket({ ticket, tunnelId, host, browser });
  if (!redeemed) return null;
  const cookie = formatPassCookie(scheme, redeemed.pass, VISITOR_PASS_SECONDS);
  return redirect(request, env, publicUrl(config, host) + redeemed.target, cookie);
}

function refuseTicket(request: Request, env: Env, href: string): Response {
  return createErrorPage(request, env, "invalid_token", {
    title: "This sign-in link is no longer valid",
    message: "A sign-in link works once, only within a minute, and only in the browser that began.",
    action: { text: "Sign in again", href },
  });
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

interface SignInStart {
  tunnelId: string;
  /** Where the visitor returns to. */
  target: string;
  /** Whether with another account than the one of the provider's current session. */
  asAnother?: boolean;
}

/** @returns the address that begins a sign-in, and the cookie of the browser that may finish it. */
async function beginSignIn(
  request: Request,
  config: Config,
  { tunnelId, target, asAnother = false }: SignInStart,
): Promise<{ href: string; cookie: string }> {
  const { PUBLIC_SCHEME: scheme, publicOrigin } = config;
  // The same nonce for all tabs: each of them can finish.
  const nonce = readSignInNonce(request.headers.get("cookie") ?? "", scheme) ?? createNonce();
  const url = new URL("/edge-auth/start", publicOrigin);
  url.searchParams.set("tunnel_id", tunnelId);
  url.searchParams.set("return_to", target.length > RETURN_TO_MAX_CHARS ? "/" : target);
  url.searchParams.set("browser", await hashNonce(nonce));
  if (asAnother) url.searchParams.set("as_another", "1");
  return { href: url.href, cookie: formatSignInCookie(scheme, nonce, SIGN_IN_COOKIE_SECONDS) };
}

function createNonce(): string {
  return toBase64Url(crypto.getRandomValues(new Uint8Array(SIGN_IN_NONCE_BYTES)));
}

/** URLs end up in logs and histories. They contain the hash, which does not reveal the cookie. */
async function hashNonce(nonce: string): Promise<string> {
  return toBase64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", toUtf8(nonce))));
}

function withCookie(response: Response, cookie: string): Response {
  response.headers.append("set-cookie", cookie);
  return response;
}

function redirect(request: Request, env: Env, location: string, cookie: string): Response {
  const headers = new Headers({
    location,
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "set-cookie": cookie,
  });
  secureTransport(request, env, headers);
  return new Response(null, { status: 302, headers });
}
