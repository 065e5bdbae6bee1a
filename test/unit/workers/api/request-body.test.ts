/** How long the API waits for a request body. The clock is moved, because the limit is half a minute. */
import { Hono } from "hono";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "../../../../workers/errors.ts";
import { API_BODIES_MAX_BYTES, limitRequestBody } from "../../../../workers/api/request-body.ts";
import type { ApiEnv } from "../../../../workers/api/route.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

interface Sent {
  address?: string;
  headers?: Record<string, string>;
}

/** Sends a request with this body. @returns the code of the refusal, or what the route answers. */
async function send(body: BodyInit, { address = "192.0.2.1", headers = {} }: Sent = {}) {
  const app = new Hono<ApiEnv>();
  app.use(async (c, next) => {
    c.set("address", address);
    await next();
  });
  app.use(limitRequestBody);
  app.onError((error) => new Response(error instanceof ApiError ? error.code : "another error"));
  app.post("/", (c) => c.text("the route ran"));
  const init = { method: "POST", headers, body, duplex: "half" } as RequestInit;
  return (await app.request("/", init)).text();
}

/** A body that begins and, until it is ended, goes on. */
function beginBody(start: Uint8Array) {
  let end = (): void => undefined;
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => {
      controller.enqueue(start);
      end = () => controller.close();
    },
  });
  return { stream, end: () => end() };
}

test.each([
  ["with a length", { "content-length": "1000" }],
  ["without a length", { "transfer-encoding": "chunked" }],
])("a body %s that does not arrive within 30 seconds is refused", async (_, headers) => {
  let answer: string | undefined;
  void send(beginBody(Buffer.from("{")).stream, { headers }).then((text) => (answer = text));
  await vi.advanceTimersByTimeAsync(29_000);
  expect(answer).toBeUndefined();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(answer).toBe("invalid_request");
});

test("the bodies of one source take at most half of the memory for bodies, until they end", async () => {
  const MIB = 1024 * 1024;
  const parts = Array.from({ length: API_BODIES_MAX_BYTES / 2 / MIB }, () =>
    beginBody(new Uint8Array(MIB)),
  );
  const answers = parts.map(({ stream }) => send(stream));
  await vi.advanceTimersByTimeAsync(0);
  expect(await send("{}")).toBe("unavailable");
  expect(await send("{}", { address: "192.0.2.2" })).toBe("the route ran");
  for (const { end } of parts) end();
  expect(new Set(await Promise.all(answers))).toEqual(new Set(["the route ran"]));
  expect(await send("{}")).toBe("the route ran");
});
