/**
 * The public routes of /auth, the setup and visitors' sign-in are limited by source address. Polling for a
 * device's approval is not: it has its own interval, and reveals nothing without 256 random bits.
 */
import { createMiddleware } from "hono/factory";
import { getAddressGroup } from "../../shared/address-group.ts";
import { ApiError } from "../errors.ts";
import { addressRateLimiter } from "../objects.ts";
import type { ApiEnv, Guard } from "./route.ts";

const limit = createMiddleware<ApiEnv>(async (c, next) => {
  const { config, address } = c.var;
  // Tests and benchmarks turn it off; a hosted service ignores that.
  if (config.AUTH_RATE_LIMIT === "on" || config.HOSTED) {
    const waitMs = await addressRateLimiter(c.env, getAddressGroup(address)).take();
    if (waitMs > 0) {
      throw new ApiError(
        "rate_limited",
        "Too many requests came from your IP address. Try again later.",
        {
          retryAfterSeconds: Math.ceil(waitMs / 1000),
        },
      );
    }
  }
  await next();
});

export const rateLimited: Guard = { middleware: limit, failures: ["rate_limited"] };
