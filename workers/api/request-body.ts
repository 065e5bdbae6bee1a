/**
 * What a request may bring. A connection whose request was not read to its end is cut by the platform, and
 * the answer may be lost with it: so what nobody wants is read all the same, up to a bound.
 */
import { createMiddleware } from "hono/factory";
import { API_BODY_MAX_BYTES } from "../../protocol/limits.ts";
import { UNREAD_BODY_MAX_BYTES, UNREAD_BODY_MAX_MS } from "../../protocol/limits/edge.ts";
import { ApiError } from "../errors.ts";
import type { ApiEnv } from "./context.ts";

export const boundedBody = createMiddleware<ApiEnv>(async (c, next) => {
  const { raw } = c.req;
  const unread: ReadableStream<Uint8Array> | null = raw.body;
  if (unread === null) return next();
  const length = raw.headers.get("content-length");
  if (length === null) {
    const body = await readWhole(unread);
    if (body === null) throw tooLarge();
    c.req.raw = new Request(raw, { body });
    return next();
  }
  if (Number(length) > API_BODY_MAX_BYTES) {
    await readOff(unread);
    throw tooLarge();
  }
  await next();
  if (!raw.bodyUsed) await readOff(unread);
});

/** @returns null when it is too large; what is left of it was read off. */
async function readWhole(body: ReadableStream<Uint8Array>): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body.values({ preventCancel: true })) {
    size += chunk.byteLength;
    if (size > API_BODY_MAX_BYTES) break;
    chunks.push(chunk);
  }
  if (size > API_BODY_MAX_BYTES) {
    await readOff(body);
    return null;
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

async function readOff(body: ReadableStream<Uint8Array>): Promise<void> {
  let left = UNREAD_BODY_MAX_BYTES;
  const nowhere = new WritableStream<Uint8Array>({
    write({ byteLength }) {
      left -= byteLength;
      if (left < 0) throw new Error("enough was read");
    },
  });
  const signal = AbortSignal.timeout(UNREAD_BODY_MAX_MS);
  // Whoever goes on sending beyond that is cut off, as whoever left in the middle has done himself.
  await body.pipeTo(nowhere, { signal }).catch(() => undefined);
}

function tooLarge(): ApiError {
  return new ApiError("payload_too_large", `At most ${API_BODY_MAX_BYTES} bytes are accepted.`);
}
