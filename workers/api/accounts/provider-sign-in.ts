/**
 * Third-party sign-in. A browser is redirected to a provider and returns with a code; the state in between is in a
 * cookie of the browser. The sign-in counts as the first factor, as a password does.
 */
import { createMiddleware } from "hono/factory";
import { PROVIDER_SIGN_IN_MAX_MS } from "../../limits.ts";
import {
  ProviderCallback,
  PROVIDERS,
  Providers,
  StartSignIn,
  type ProviderName,
} from "../../../protocol/schemas/accounts/providers.ts";
import { toOutboxMail } from "../../integrations/mail/mail.ts";
import { identityLinkedMail } from "../../integrations/mail/mails.ts";
import { ApiError } from "../../errors.ts";
import {
  ACCOUNT_SIGN_IN,
  createAttempt,
  decryptAttempt,
  encryptAttempt,
  type SignInAttempt,
} from "../../identity/providers/attempts.ts";
import { getFirstOrganizationTerms } from "../../identity/organization-terms.ts";
import { listConfiguredProviders, findProvider } from "../../identity/providers/providers.ts";
import type { Provider, ProviderAccount } from "../../identity/providers/provider.ts";
import {
  buildReturnUrl,
  sanitizeReturnTo,
  type SignInOutcome,
} from "../../identity/providers/return-to.ts";
import { findOrLinkAccount } from "../../store/accounts/identities.ts";
import {
  createRouter,
  jsonResponse,
  route,
  type ApiContext,
  type ApiEnv,
  type Guard,
} from "../route.ts";
import {
  callProvider,
  invalidProviderResponse,
  emailNotVerified,
  forBrowsers,
  isOnPublicHost,
  signInNotStarted,
  providerNotConfigured,
} from "./provider-redirects.ts";
import { clearHostCookie, readHostCookie, setHostCookie } from "../host-cookies.ts";
import { pollRateLimited, rateLimited } from "../rate-limit.ts";
import { hashSessionIds } from "./refresh-cookie.ts";
import { completeFirstFactor } from "./sign-in.ts";

export const providerSignIn = createRouter();

const COOKIE = "underpass-oauth";

/**
 * An attempt ends with the response of its provider, whatever the outcome. It runs after the limit of the rate: a request
 * that was refused there can be sent again.
 */
const endAttempt: Guard = {
  middleware: createMiddleware<ApiEnv>(async (c, next) => {
    await next();
    clearHostCookie(c, COOKIE);
  }),
  failures: [],
};

providerSignIn.openapi(
  route({
    operationId: "listSignInProviders",
    method: "get",
    path: "/auth/providers",
    summary: "List the providers for signing in",
    guard: pollRateLimited,
    responses: { 200: jsonResponse("The providers that are configured.", Providers) },
  }),
  (c) => c.json({ providers: listConfiguredProviders(c.env, c.var.config) }, 200),
);

const OPERATION_SUFFIXES: Record<ProviderName, string> = { idp_a: "IdpA", idp_b: "IdpB" };

for (const name of PROVIDERS) {
  providerSignIn.openapi(
    route({
      operationId: `startSignInWith${OPERATION_SUFFIXES[name]}`,
      method: "get",
      path: `/auth/oauth/${name}/start`,
      summary: `Sign in with ${name}`,
      middleware: forBrowsers,
      guard: rateLimited,
      query: StartSignIn,
      setsCookie: true,
      hasErrorPages: true,
      responses: { 302: { description: "Redirects to the provider." } },
      failures: ["provider_not_configured", "unavailable"],
    }),
    (c) => start(c, name, c.req.valid("query")),
  );

  providerSignIn.openapi(
    route({
      operationId: `completeSignInWith${OPERATION_SUFFIXES[name]}`,
      method: "get",
      path: `/auth/oauth/${name}/callback`,
      summary: `Complete the sign-in with ${name}`,
      middleware: forBrowsers,
      guard: [rateLimited, endAttempt],
      query: ProviderCallback,
      setsCookie: true,
      hasErrorPages: true,
      responses: {
        302: {
          description:
            "Redirects to `return_to`, with `oauth_token` (an access token; the cookie `qnt_refresh` is set), " +
            "`mfa_challenge` (for `POST /auth/login/mfa`) or `oauth_error` in its query.",
        },
      },
      failures: [
        "unauthorized",
        "forbidden",
        "email_not_verified",
        "provider_not_configured",
        "unavailable",
      ],
    }),
    (c) => finish(c, name, c.req.valid("query").state ?? ""),
  );
}

async function start(
  c: ApiContext,
  name: ProviderName,
  { return_to, moved }: { return_to: string; moved?: string | undefined },
): Promise<Response> {
  const { config } = c.var;
  const provider = requireProvider(c, name);
  // Only once: behind a proxy that changes the host this would be a loop.
  if (!isOnPublicHost(c) && moved === undefined) {
    const url = new URL(`/auth/oauth/${name}/start`, config.publicOrigin);
    url.search = new URLSearchParams({ return_to, moved: "1" }).toString();
    return c.redirect(url.href);
  }
  const attempt = {
    ...createAttempt(name, sanitizeReturnTo(return_to, config.publicOrigin), Date.now()),
    sessions: await hashSessionIds(c),
  };
  const url = await callProvider(c, provider, provider.authorizationUrl(attempt));
  const encrypted = await encryptAttempt(config, ACCOUNT_SIGN_IN, attempt);
  setHostCookie(c, COOKIE, encrypted, PROVIDER_SIGN_IN_MAX_MS / 1000);
  return c.redirect(url.href);
}

async function finish(c: ApiContext, name: ProviderName, state: string): Promise<Response> {
  const { config } = c.var;
  const provider = requireProvider(c, name);
  const encrypted = readHostCookie(c, COOKIE) ?? "";
  const returned = { encrypted, provider: name, state };
  const attempt = await decryptAttempt(config, ACCOUNT_SIGN_IN, returned, Date.now());
  // Over http, another host could set the cookie. It does not know the session that it would replace.
  if (attempt?.sessions !== (await hashSessionIds(c))) throw signInNotStarted();
  const parameters = new URL(c.req.url).searchParams;
  const identified = await callProvider(c, provider, provider.identify(attempt, parameters));
  switch (identified.kind) {
    case "account":
      return signInAs(c, provider, attempt, identified.account);
    case "denied":
      return redirectBack(c, attempt, "oauth_error", identified.error);
    case "invalid_answer":
      throw invalidProviderResponse();
    case "email_not_verified":
      throw emailNotVerified(provider);
  }
}

async function signInAs(
  c: ApiContext,
  { name, host }: Provider,
  attempt: SignInAttempt,
  { email, ...subject }: ProviderAccount,
): Promise<Response> {
  const { config, db, address } = c.var;
  const user = await findOrLinkAccount(
    db,
    { provider: name, ...subject },
    {
      email,
      terms: getFirstOrganizationTerms(config),
      ip: address,
      mailIfLinked:
        email === null ? null : await toOutboxMail(config, identityLinkedMail(email, host, config)),
    },
  );
  switch (user) {
    case "email_not_verified":
      throw emailNotVerified({ host });
    case "linked_to_another":
      throw new ApiError(
        "forbidden",
        `The account with this email address is linked to another account at ${host}. Sign in with that account.`,
      );
  }
  const passed = await completeFirstFactor(c, user);
  return "mfa_required" in passed
    ? redirectBack(c, attempt, "mfa_challenge", passed.challenge_token)
    : redirectBack(c, attempt, "oauth_token", passed.access_token);
}

function redirectBack(
  c: ApiContext,
  attempt: SignInAttempt,
  outcome: SignInOutcome,
  value: string,
): Response {
  return c.redirect(buildReturnUrl(attempt.returnTo, c.var.config.publicOrigin, outcome, value));
}

function requireProvider(c: ApiContext, name: ProviderName): Provider {
  const provider = findProvider(c.env, c.var.config, name);
  if (!provider) throw providerNotConfigured(name);
  return provider;
}
