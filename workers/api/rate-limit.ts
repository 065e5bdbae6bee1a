/**
 * What strangers may request is limited by source address: most of /auth, the setup, and visitors' sign-in. Routes that
 * require a bearer are not limited, except where a password or code can be guessed. Guesses at the code of a machine are
 * limited by user, and renewals by session: each page that is opened renews its session, and the people of an office share
 * one address.
 */
import { createMiddleware } from "hono/factory";
import { getAddressGroup } from "../../shared/address-group.ts";
import type { TokenBucketConfig } from "../../shared/bounds/token-bucket.ts";
import { hasRateLimits } from "../config/config.ts";
import { ApiError } from "../errors.ts";
import { callObject } from "../call-object.ts";
import type { Env } from "../env.ts";
import { rateLimiterObject } from "../objects.ts";
import { readRefreshCookie } from "./accounts/refresh-cookie.ts";
import type { ApiContext, ApiEnv, Guard } from "./route.ts";

/** For the list of providers, a machine's polls, and renewals: a page or a long poll repeats these requests. */
const POLL_RULE: TokenBucketConfig = { burst: 30, refillMs: 2_000 };

/**
 * For visitors' sign-ins, each of which takes two requests. They cost no guess, no mail and no row, and the visitors of an office
 * share one address: sixty of them can sign in at the same time.
 */
const VISITOR_RULE: TokenBucketConfig = { burst: 120, refillMs: 500 };

/** Each request costs a guess, a mail or a row. */
export const rateLimited = createLimit(getAddressBucket, "the caller's IP address");

export const pollRateLimited = createLimit((c) => {
  return { ...getAddressBucket(c), key: `polls of ${getGroup(c)}`, rule: POLL_RULE };
}, "the caller's IP address");

export const visitorSignInRateLimited = createLimit((c) => {
  return { ...getAddressBucket(c), key: `visitors of ${getGroup(c)}`, rule: VISITOR_RULE };
}, "the caller's IP address");

/**
 * For attempts of a signed-in user at the codes that machines show to their users: a guessed one could be approved or denied.
 * It runs after a guard for members.
 */
export const userCodeRateLimited = createLimit((c) => {
  const key = `user codes of ${c.var.principal.userId}`;
  return { key, rule: POLL_RULE, source: "your account" };
}, "the user");

/** The proof in the cookie shows that this service issued it, so a stranger can't choose among many sessions. */
export const renewalRateLimited = createLimit(async (c) => {
  const token = await readRefreshCookie(c);
  if (token === null || token === "not_own") return getAddressBucket(c);
  return { key: `renewals of ${token.sessionId}`, rule: POLL_RULE, source: "this session" };
}, "the session, without one by the caller's IP address");

/** The bucket that a request takes a token from. */
interface Bucket {
  key: string;
  /** Default: the rule of `rateLimited`. */
  rule?: TokenBucketConfig;
  /** Where the requests come from, for the message. */
  source: string;
}

function getAddressBucket(c: ApiContext): Bucket {
  return { key: getGroup(c), source: "your IP address" };
}

function getGroup(c: ApiContext): string {
  return getAddressGroup(c.var.address);
}

/**
 * @param key of the bucket.
 * @returns 0 when the request is allowed, else the milliseconds until the next one is.
 * @throws ApiError `unavailable` when the bucket can't be read: a request that can't be counted is not allowed.
 */
export function takeToken(env: Env, key: string, rule?: TokenBucketConfig): Promise<number> {
  return callObject(rateLimiterObject(env, key).take(key, rule));
}

/** @param limitedBy for the documentation. */
function createLimit(
  chooseBucket: (c: ApiContext) => Bucket | Promise<Bucket>,
  limitedBy: string,
): Guard {
  const middleware = createMiddleware<ApiEnv>(async (c, next) => {
    if (hasRateLimits(c.var.config)) {
      const { key, rule, source } = await chooseBucket(c);
      const waitMs = await takeToken(c.env, key, rule);
      if (waitMs > 0) {
        throw new ApiError(
          "rate_limited",
          `Too many requests came from ${source}. Try again later.`,
          { retryAfterSeconds: Math.ceil(waitMs / 1000) },
        );
      }
    }
    await next();
  });
  return { middleware, failures: ["rate_limited"], requirement: `Limited by ${limitedBy}.` };
}
