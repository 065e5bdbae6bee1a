/**
 * What a request may bring. A connection whose request was not read to its end is cut by the platform, and
 * the answer may be lost with it: so what nobody wants is read all the same, up to a bound.
 */
import { createMiddleware } from "hono/factory";
import { ApiError } from "../errors.ts";
import { BoundedBuffer } from "../../shared/bounded-buffer.ts";
import type { ApiEnv } from "./route.ts";

const API_BODY_MAX_BYTES = 1024 * 1024;
/** From a request's head to the end of its body. */
const API_BODY_MAX_MS = 30_000;
/** A body that is refused is read to its end all the same, up to this: then the refusal is read too. */
export const DISCARDED_BODY_MAX_BYTES = 8 * 1024 * 1024;
const DISCARDED_BODY_MAX_MS = 5_000;

/** Routes find the body whole: none of them waits for a caller who sends it byte by byte. */
export const limitRequestBody = createMiddleware<ApiEnv>(async (c, next) => {
  const { raw } = c.req;
  const unread: ReadableStream<Uint8Array> | null = raw.body;
  if (unread === null) return next();
  const isTooLong = Number(raw.headers.get("content-length")) > API_BODY_MAX_BYTES;
  const body = isTooLong ? null : await readBody(unread);
  if (body === null) {
    await discard(unread);
    throw new ApiError("payload_too_large", `At most ${API_BODY_MAX_BYTES} bytes are accepted.`);
  }
  if (raw.method !== "GET" && raw.method !== "HEAD") c.req.raw = new Request(raw, { body });
  await next();
});

/** @returns null when it is too large; what is left of it can be read off. */
async function readBody(body: ReadableStream<Uint8Array>): Promise<Uint8Array | null> {
  const buffer = new BoundedBuffer(API_BODY_MAX_BYTES);
  const whole = await withTimeout(API_BODY_MAX_MS, collect(body, buffer));
  if (whole !== "late") return whole ? buffer.bytes : null;
  const seconds = API_BODY_MAX_MS / 1000;
  throw new ApiError("invalid_request", `The body was not whole within ${seconds} seconds.`);
}

/** @returns whether there was room for all of it. */
async function collect(body: ReadableStream<Uint8Array>, buffer: BoundedBuffer): Promise<boolean> {
  for await (const piece of body.values({ preventCancel: true })) {
    if (!buffer.append(piece)) return false;
  }
  return true;
}

async function discard(body: ReadableStream<Uint8Array>): Promise<void> {
  let left = DISCARDED_BODY_MAX_BYTES;
  const nowhere = new WritableStream<Uint8Array>({
    write({ byteLength }) {
      left -= byteLength;
      if (left < 0) throw new Error("enough was read");
    },
  });
  // Whoever goes on sending beyond that is cut off, as whoever left in the middle has done himself.
  const readingOff = body.pipeTo(nowhere).catch(() => undefined);
  await withTimeout(DISCARDED_BODY_MAX_MS, readingOff);
}

/** Not by a signal: the platform hears of it only with the next bytes, which may never come. */
async function withTimeout<Value>(ms: number, reading: Promise<Value>): Promise<Value | "late"> {
  const { promise: late, resolve } = Promise.withResolvers<"late">();
  const timer = setTimeout(resolve, ms, "late");
  try {
    return await Promise.race([reading, late]);
  } finally {
    clearTimeout(timer);
    // It ends with the request; nobody hears how.
    reading.catch(() => undefined);
  }
}
