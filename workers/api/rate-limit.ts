/**
 * Everything that a stranger may call below /auth, the setup and visitors' sign-in are limited by source address. Routes
 * that require a bearer are not: only guesses at a password or code are, wherever they are sent.
 */
import { createMiddleware } from "hono/factory";
import { getAddressGroup } from "../../shared/address-group.ts";
import type { TokenBucketConfig } from "../../shared/token-bucket.ts";
import { hasRateLimits } from "../config/config.ts";
import { ApiError } from "../errors.ts";
import { rateLimiterObject } from "../objects.ts";
import type { ApiContext, ApiEnv, Guard } from "./route.ts";

/** Reading the list of providers, and a machine's polls: a page or a long poll repeats them. */
const POLL_RULE: TokenBucketConfig = { burst: 30, refillMs: 2_000 };

/** Each request costs a guess, a mail or a row. */
export const rateLimited = createLimit((c, group) => rateLimiterObject(c.env, group).take(group));

export const pollRateLimited = createLimit((c, group) => {
  const key = `polls of ${group}`;
  return rateLimiterObject(c.env, key).take(key, POLL_RULE);
});

function createLimit(take: (c: ApiContext, group: string) => Promise<number>): Guard {
  const middleware = createMiddleware<ApiEnv>(async (c, next) => {
    const { config, address } = c.var;
    const waitMs = hasRateLimits(config) ? await take(c, getAddressGroup(address)) : 0;
    if (waitMs > 0) {
      throw new ApiError(
        "rate_limited",
        "Too many requests came from your IP address. Try again later.",
        { retryAfterSeconds: Math.ceil(waitMs / 1000) },
      );
    }
    await next();
  });
  return {
    middleware,
    failures: ["rate_limited"],
    requirement: "Limited by the caller's IP address.",
  };
}
