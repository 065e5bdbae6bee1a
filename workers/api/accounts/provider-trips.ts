/** What all routes have in common that send a browser to a provider and get it back. */
import { createMiddleware } from "hono/factory";
import type { ErrorBody } from "../../../protocol/errors.ts";
import { getAuthority, parseHost } from "../../../protocol/hosts.ts";
import { renderHtmlPage, PAGE_HEADERS, wantsHtml } from "../../error-page.ts";
import { ApiError } from "../../errors.ts";
import { describeFailure } from "../../identity/providers/calls.ts";
import type { Provider } from "../../identity/providers/provider.ts";
import { log } from "../../../shared/log.ts";
import type { ApiContext, ApiEnv } from "../route.ts";

/** Its addresses carry codes and tokens, and whoever meets a failure is a person with a browser. */
export const forBrowsers = createMiddleware<ApiEnv>(async (c, next) => {
  await next();
  if (c.error && wantsHtml(c.req.raw)) {
    const { status } = c.res;
    const { error, message } = await c.res.json<ErrorBody>();
    const page = renderHtmlPage(status, error, { title: "Signing in did not work", message });
    c.res = new Response(page, { status, headers: PAGE_HEADERS });
  }
  c.header("Referrer-Policy", "no-referrer");
  c.header("Vary", "Accept", { append: true });
});

/** The provider leads back to the first host, and a cookie is sent to the host that set it alone. */
export function isOnPublicHost(c: ApiContext): boolean {
  return parseHost(getAuthority(c.req.url)) === new URL(c.var.config.publicOrigin).hostname;
}

export async function callProvider<Value>(
  c: ApiContext,
  { name, host }: Provider,
  asked: Promise<Value>,
): Promise<Value> {
  try {
    return await asked;
  } catch (failure) {
    const { requestId } = c.var;
    log("error", "provider_failed", { requestId, name, cause: describeFailure(failure) });
    const message = `${host} can't be reached, or gave an answer that can't be trusted. Try again later.`;
    throw new ApiError("unavailable", message, { cause: failure });
  }
}

export function providerNotConfigured(name: string): ApiError {
  return new ApiError("provider_not_configured", `${name} is not set up on this server.`);
}

export function signInNotStarted(): ApiError {
  const message = "This sign-in was not started in this browser, or too long ago. Start it again.";
  return new ApiError("invalid_request", message);
}

export function invalidProviderResponse(): ApiError {
  return new ApiError("invalid_request", "This answer of the provider is not good. Start again.");
}

export function emailNotVerified({ host }: Pick<Provider, "host">): ApiError {
  const message = `Your account at ${host} has no confirmed primary e-mail address. Confirm it there first.`;
  return new ApiError("email_not_verified", message);
}
