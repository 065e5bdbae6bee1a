/** For the routes that redirect a browser to a provider, and those to which the provider redirects it back. */
import { createMiddleware } from "hono/factory";
import type { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import { getAuthority, parseHost } from "../../../protocol/hosts.ts";
import {
  getErrorReference,
  renderHtmlPage,
  PAGE_HEADERS,
  wantsHtml,
} from "../../html-error-page.ts";
import { ApiError } from "../../errors.ts";
import { describeProviderError } from "../../identity/providers/calls.ts";
import type { Provider } from "../../identity/providers/provider.ts";
import { log } from "../../../shared/log.ts";
import type { ApiContext, ApiEnv } from "../route.ts";

/** The title of the page about an error. */
export const SIGN_IN_FAILED = "The sign-in failed";

/** Errors become pages, for a person with a browser. The URLs contain codes and tokens, which no Referer may reveal. */
export const forBrowsers = createMiddleware<ApiEnv>(async (c, next) => {
  await next();
  if (c.error && wantsHtml(c.req.raw)) {
    const { status } = c.res;
    const { error, message } = await c.res.json<ErrorBody>();
    const reference = getErrorReference(c.var.config.publicOrigin, error);
    const page = renderHtmlPage(status, error, { title: SIGN_IN_FAILED, message, reference });
    c.res = new Response(page, { status, headers: PAGE_HEADERS });
  }
  c.header("Referrer-Policy", "no-referrer");
  c.header("Vary", "Accept", { append: true });
});

/** The provider redirects to the primary host, and a browser sends a cookie only to the host that set it. */
export function isOnPublicHost(c: ApiContext): boolean {
  return parseHost(getAuthority(c.req.url)) === new URL(c.var.config.publicOrigin).hostname;
}

export async function callProvider<Value>(
  c: ApiContext,
  { name, host }: Provider,
  response: Promise<Value>,
): Promise<Value> {
  try {
    return await response;
  } catch (failure) {
    const { requestId } = c.var;
    log("error", "provider_failed", { requestId, name, cause: describeProviderError(failure) });
    const message = `The provider ${host} can't be reached, or its response is not valid. Try again later.`;
    throw new ApiError("unavailable", message, { cause: failure });
  }
}

export function providerNotConfigured(name: string): ApiError {
  return new ApiError(
    "provider_not_configured",
    `The provider ${name} is not configured on this server.`,
  );
}

export function signInNotStarted(): ApiError {
  const message =
    "This sign-in was not started in this browser, or it has expired. Start it again.";
  return new ApiError("invalid_request", message);
}

export function invalidProviderResponse(): ApiError {
  return new ApiError(
    "invalid_request",
    "The response of the provider is not valid. Start the sign-in again.",
  );
}

export function emailNotVerified({ host }: Pick<Provider, "host">): ApiError {
  const message = `Your account at ${host} has no verified primary email address. Verify it there first.`;
  return new ApiError("email_not_verified", message);
}
