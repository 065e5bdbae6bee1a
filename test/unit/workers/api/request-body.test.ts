/** How long the API waits for a request body. The clock is moved, because the limit is half a minute. */
import { Hono } from "hono";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "../../../../workers/errors.ts";
import { limitRequestBody } from "../../../../workers/api/request-body.ts";
import type { ApiEnv } from "../../../../workers/api/route.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** Sends a request whose body begins and never ends. */
async function sendPart(headers: Record<string, string>): Promise<string> {
  const app = new Hono<ApiEnv>();
  app.use(limitRequestBody);
  app.onError((error) => new Response(error instanceof ApiError ? error.code : "another error"));
  app.post("/", (c) => c.text("the route ran"));
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(Buffer.from("{")),
  });
  const init = { method: "POST", headers, body, duplex: "half" } as RequestInit;
  return (await app.request("/", init)).text();
}

test.each([
  ["with a length", { "content-length": "1000" }],
  ["without a length", { "transfer-encoding": "chunked" }],
])("a body %s that does not arrive within 30 seconds is refused", async (_, headers) => {
  let answer: string | undefined;
  void sendPart(headers).then((text) => (answer = text));
  await vi.advanceTimersByTimeAsync(29_000);
  expect(answer).toBeUndefined();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(answer).toBe("invalid_request");
});
