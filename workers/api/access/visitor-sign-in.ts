/**
 * /edge-auth: a visitor of a tunnel signs in. The tunnel redirects the browser here, this service redirects it to the
 * provider, and afterwards back to the tunnel with a ticket. The visitor gets no account, and the cookie is set on
 * the tunnel's own host.
 */
import { createMiddleware } from "hono/factory";
import {
  formatDeniedMessage,
  isAllowedEmail,
  SIGN_IN_TICKET_PATH,
} from "../../../access/identity.ts";
import { ERROR_HEADER, STATUS_BY_CODE } from "../../../protocol/errors.ts";
import { PROVIDER_SIGN_IN_MAX_MS } from "../../limits.ts";
import { StartVisitorSignIn } from "../../../protocol/schemas/access/identity-gate.ts";
import { ProviderCallback } from "../../../protocol/schemas/accounts/providers.ts";
import { publicUrl } from "../../config/config.ts";
import {
  getErrorReference,
  renderHtmlPage,
  PAGE_HEADERS,
  wantsHtml,
} from "../../html-error-page.ts";
import { ApiError } from "../../errors.ts";
import {
  VISITOR_SIGN_IN,
  createAttempt,
  decryptAttempt,
  encryptAttempt,
  type VisitorAttempt,
} from "../../identity/providers/attempts.ts";
import { findVisitorProvider } from "../../identity/providers/providers.ts";
import type { Provider } from "../../identity/providers/provider.ts";
import { sanitizeTarget } from "../../identity/providers/return-to.ts";
import { encryptVisitorTicket } from "../../identity/visitors/visitor-tickets.ts";
import { findIdentityGate } from "../../store/access/gates.ts";
import { clearHostCookie, readHostCookie, setHostCookie } from "../host-cookies.ts";
import { createRouter, route, type ApiContext, type ApiEnv, type Guard } from "../route.ts";
import {
  callProvider,
  invalidProviderResponse,
  emailNotVerified,
  forBrowsers,
  isOnPublicHost,
  SIGN_IN_FAILED,
  signInNotStarted,
  providerNotConfigured,
} from "../accounts/provider-redirects.ts";
import { visitorSignInRateLimited } from "../rate-limit.ts";

export const visitorSignIn = createRouter();

const START = "/edge-auth/start";

/** Each attempt has its own cookie, so that a visitor can sign in from several tabs. */
function getCookieName(state: string): string {
  return `underpass-visit-${/^[\w-]{8}/.exec(state)?.[0] ?? ""}`;
}

/**
 * An attempt ends with the response of its provider, whatever the outcome. It runs after the limit of the rate: a request
 * that was refused there can be sent again.
 */
const endAttempt: Guard = {
  middleware: createMiddleware<ApiEnv>(async (c, next) => {
    await next();
    clearHostCookie(c, getCookieName(c.req.query("state") ?? ""));
  }),
  failures: [],
};

visitorSignIn.openapi(
  route({
    operationId: "startVisitorSignIn",
    method: "get",
    path: START,
    summary: "Sign in to visit a tunnel",
    description: "Tunnels redirect browsers here. `return_to` is a path on the tunnel's own host.",
    middleware: forBrowsers,
    guard: visitorSignInRateLimited,
    query: StartVisitorSignIn,
    setsCookie: true,
    hasErrorPages: true,
    responses: { 302: { description: "Redirects to the provider." } },
    failures: ["not_found", "provider_not_configured", "unavailable"],
  }),
  (c) => start(c, c.req.valid("query")),
);

visitorSignIn.openapi(
  route({
    operationId: "completeVisitorSignIn",
    method: "get",
    path: "/edge-auth/callback",
    summary: "Complete the sign-in of a visitor",
    middleware: forBrowsers,
    guard: [visitorSignInRateLimited, endAttempt],
    query: ProviderCallback,
    setsCookie: true,
    hasErrorPages: true,
    responses: {
      302: {
        description:
          "Redirects to the tunnel, with a ticket that the tunnel exchanges for a cookie.",
      },
    },
    failures: [
      "forbidden",
      "email_not_verified",
      "not_found",
      "provider_not_configured",
      "unavailable",
    ],
  }),
  (c) => finish(c, c.req.valid("query").state ?? ""),
);

async function start(c: ApiContext, query: StartVisitorSignIn): Promise<Response> {
  const { config, db } = c.var;
  const { tunnel_id: tunnelId, return_to: wantedPath, as_another: another, browser } = query;
  if (!isOnPublicHost(c) && query.moved === undefined) {
    const url = new URL(c.req.url);
    url.searchParams.set("moved", "1");
    return c.redirect(config.publicOrigin + START + url.search);
  }
  const gate = await findIdentityGate(db, tunnelId);
  if (!gate) throw noIdentityGate();
  const provider = requireProvider(c);
  const origin = publicUrl(config, `${gate.subdomain}.${config.SERVICE_DOMAIN}`);
  const target = sanitizeTarget(origin, wantedPath);
  // Only the tunnel's own host can give the browser the cookie that the sign-in is bound to.
  if (browser === undefined) return c.redirect(origin + target);
  const attempt = { ...createAttempt(provider.name, target, Date.now()), tunnelId, browser };
  const account = another === undefined ? undefined : "another";
  const url = await callProvider(c, provider, provider.authorizationUrl(attempt, account));
  const encrypted = await encryptAttempt(config, VISITOR_SIGN_IN, attempt);
  setHostCookie(c, getCookieName(attempt.state), encrypted, PROVIDER_SIGN_IN_MAX_MS / 1000);
  return c.redirect(url.href);
}

async function finish(c: ApiContext, state: string): Promise<Response> {
  const provider = requireProvider(c);
  const encrypted = readHostCookie(c, getCookieName(state)) ?? "";
  const returned = { encrypted, provider: provider.name, state };
  const attempt = await decryptAttempt(c.var.config, VISITOR_SIGN_IN, returned, Date.now());
  if (!attempt) throw signInNotStarted();
  const parameters = new URL(c.req.url).searchParams;
  const identified = await callProvider(c, provider, provider.identify(attempt, parameters));
  switch (identified.kind) {
    case "account": {
      const { email } = identified.account;
      if (email === null)
        return refuse(c, attempt, { error: emailNotVerified(provider), asAnother: true });
      return admitVisitor(c, attempt, email);
    }
    case "denied": {
      const message = `The provider ${provider.host} did not sign you in: ${identified.error}.`;
      return refuse(c, attempt, { error: new ApiError("forbidden", message) });
    }
    case "invalid_answer":
      throw invalidProviderResponse();
    case "email_not_verified":
      return refuse(c, attempt, { error: emailNotVerified(provider), asAnother: true });
  }
}

/**
 * The tunnel checks its lists with each request. They are checked here too, so that a refused visitor is not redirected
 * first.
 */
async function admitVisitor(
  c: ApiContext,
  attempt: VisitorAttempt,
  email: string,
): Promise<Response> {
  const { config, db } = c.var;
  const { tunnelId, browser, returnTo: target } = attempt;
  const gate = await findIdentityGate(db, tunnelId);
  if (!gate) throw noIdentityGate();
  if (!isAllowedEmail(gate.allowList, email)) {
    const error = new ApiError("forbidden", formatDeniedMessage(email));
    const title = "You are not allowed to visit this tunnel";
    return refuse(c, attempt, { error, title, asAnother: true });
  }
  const host = `${gate.subdomain}.${config.SERVICE_DOMAIN}`;
  const url = new URL(SIGN_IN_TICKET_PATH, publicUrl(config, host));
  const visit = { tunnelId, host, browser, email, target };
  const ticket = await encryptVisitorTicket(config, visit, Date.now());
  url.searchParams.set("ticket", ticket);
  return c.redirect(url.href);
}

interface Refusal {
  error: ApiError;
  title?: string;
  /** The provider asks for the account when the visitor signs in again. */
  asAnother?: true;
}

/** @returns a page from which the visitor can sign in again. @throws ApiError for a program. */
function refuse(
  c: ApiContext,
  { tunnelId, browser, returnTo }: VisitorAttempt,
  { error, title = SIGN_IN_FAILED, asAnother }: Refusal,
): Response {
  if (!wantsHtml(c.req.raw)) throw error;
  const { code, message } = error;
  const again = new URLSearchParams({ tunnel_id: tunnelId, return_to: returnTo, browser });
  if (asAnother) again.set("as_another", "1");
  const page = renderHtmlPage(STATUS_BY_CODE[code], code, {
    title,
    message,
    action: {
      text: asAnother ? "Sign in with another account" : "Sign in again",
      href: `${START}?${again.toString()}`,
    },
    reference: getErrorReference(c.var.config.publicOrigin, code),
  });
  const headers = { ...PAGE_HEADERS, [ERROR_HEADER]: code };
  return c.newResponse(page, { status: STATUS_BY_CODE[code], headers });
}

function noIdentityGate(): ApiError {
  return new ApiError("not_found", "This tunnel does not exist, or it does not require a sign-in.");
}

function requireProvider(c: ApiContext): Provider {
  const provider = findVisitorProvider(c.env, c.var.config);
  if (!provider) throw providerNotConfigured("idp_a");
  return provider;
}
