/** Rate limits whose bucket can't be read. */
import { Hono } from "hono";
import { expect, test } from "vitest";
import type { Config } from "../../../../workers/config/config.ts";
import { ApiError, errorResponse } from "../../../../workers/errors.ts";
import { rateLimited } from "../../../../workers/api/rate-limit.ts";
import type { ApiEnv } from "../../../../workers/api/route.ts";

/** Answers no call, as while it restarts. */
const RATE_LIMITER = {
  getByName: () => ({ take: () => Promise.reject(new Error("it restarts")) }),
};

test("a request that can't be counted is refused with 503, and when to send it again", async () => {
  const app = new Hono<ApiEnv>();
  app.use(async (c, next) => {
    c.set("config", { AUTH_RATE_LIMIT: "on" } as Config);
    c.set("address", "192.0.2.1");
    await next();
  });
  app.onError((error) => {
    if (error instanceof ApiError) return errorResponse(error);
    throw error;
  });
  app.post("/auth/login", rateLimited.middleware!, (c) => c.text("the route ran"));
  const response = await app.request(
    "/auth/login",
    { method: "POST" },
    {
      RATE_LIMITER,
    },
  );
  expect(response.status).toBe(503);
  expect(response.headers.get("retry-after")).toBe("2");
  expect(await response.json()).toMatchObject({ error: "unavailable", retry_after_seconds: 2 });
});
