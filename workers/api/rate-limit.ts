/**
 * The routes of /auth that anybody can call, the setup and visitors' sign-in are limited by source address. Polling for a
 * device's approval is not: it has a pace of its own, and reveals nothing without 256 random bits.
 */
import { createMiddleware } from "hono/factory";
import { getAddressGroup } from "../../shared/address-group.ts";
import { ApiError } from "../errors.ts";
import { addressRateLimiter } from "../objects.ts";
import type { ApiEnv, Guard } from "./route.ts";

const limit = createMiddleware<ApiEnv>(async (c, next) => {
  const { config, address } = c.var;
  // Turning it off is for tests and benchmarks; on a hosted service it does nothing.
  if (config.AUTH_RATE_LIMIT === "on" || config.HOSTED) {
    const waitMs = await addressRateLimiter(c.env, getAddressGroup(address)).take();
    if (waitMs > 0) {
      throw new ApiError("rate_limited", "Too many requests from your address. Wait a little.", {
        retryAfterSeconds: Math.ceil(waitMs / 1000),
      });
    }
  }
  await next();
});

export const rateLimited: Guard = { middleware: limit, failures: ["rate_limited"] };
