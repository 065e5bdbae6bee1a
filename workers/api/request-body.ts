/**
 * The size and the duration of a request body are limited. The platform closes a connection whose request was not
 * read to its end, and the response may be lost with it: so a refused body is read too, up to a limit.
 */
import { createMiddleware } from "hono/factory";
import { ApiError } from "../errors.ts";
import { getAddressGroup } from "../../shared/address-group.ts";
import { BoundedBuffer } from "../../shared/bounds/bounded-buffer.ts";
import { SourceMemory, type MemoryReservation } from "../../shared/bounds/source-memory.ts";
import type { ApiEnv } from "./route.ts";

const API_BODY_MAX_BYTES = 1024 * 1024;
/** For the bodies of all requests of an isolate, until their routes have ended. */
export const API_BODIES_MAX_BYTES = 64 * 1024 * 1024;
const BODIES_FULL_RETRY_SECONDS = 5;
/** From the head of a request to the end of its body. */
const API_BODY_MAX_MS = 30_000;
/** A refused body is read and discarded up to this size, so that the client reads the refusal. */
export const DISCARDED_BODY_MAX_BYTES = 8 * 1024 * 1024;
const DISCARDED_BODY_MAX_MS = 5_000;

const bodyMemory = new SourceMemory(API_BODIES_MAX_BYTES);

/** Buffers the whole body before the route runs: no route waits for a caller that sends it byte by byte. */
export const limitRequestBody = createMiddleware<ApiEnv>(async (c, next) => {
  const { raw } = c.req;
  const unread: ReadableStream<Uint8Array> | null = raw.body;
  c.set("bodyBytes", 0);
  if (unread === null) return next();
  const memory = bodyMemory.createReservation(getAddressGroup(c.var.address));
  try {
    const isTooLong = Number(raw.headers.get("content-length")) > API_BODY_MAX_BYTES;
    const body = isTooLong ? "too_large" : await readBody(unread, memory);
    if (typeof body === "string") {
      await discard(unread);
      throw createRefusal(body);
    }
    c.set("bodyBytes", body.byteLength);
    if (raw.method !== "GET" && raw.method !== "HEAD") c.req.raw = new Request(raw, { body });
    await next();
  } finally {
    memory.clear();
  }
});

/** Why a body was not read to its end. The rest can still be read and discarded. */
type BodyRefusal = "too_large" | "no_memory";

function createRefusal(refusal: BodyRefusal): ApiError {
  return refusal === "too_large"
    ? new ApiError(
        "payload_too_large",
        `The request body must have at most ${API_BODY_MAX_BYTES} bytes.`,
      )
    : new ApiError("unavailable", "Too many large requests are in progress. Try again later.", {
        retryAfterSeconds: BODIES_FULL_RETRY_SECONDS,
      });
}

async function readBody(
  body: ReadableStream<Uint8Array>,
  memory: MemoryReservation,
): Promise<Uint8Array | BodyRefusal> {
  const buffer = new BoundedBuffer(API_BODY_MAX_BYTES);
  const refusal = await withTimeout(API_BODY_MAX_MS, collect(body, buffer, memory));
  if (refusal === null) return buffer.bytes;
  if (refusal !== "late") return refusal;
  const seconds = API_BODY_MAX_MS / 1000;
  throw new ApiError(
    "invalid_request",
    `The request body did not arrive within ${seconds} seconds.`,
  );
}

/** @returns null when the body is complete. */
async function collect(
  body: ReadableStream<Uint8Array>,
  buffer: BoundedBuffer,
  memory: MemoryReservation,
): Promise<BodyRefusal | null> {
  for await (const piece of body.values({ preventCancel: true })) {
    if (!buffer.append(piece)) return "too_large";
    if (!memory.resize(buffer.bytes.byteLength)) return "no_memory";
  }
  return null;
}

async function discard(body: ReadableStream<Uint8Array>): Promise<void> {
  let left = DISCARDED_BODY_MAX_BYTES;
  const nowhere = new WritableStream<Uint8Array>({
    write({ byteLength }) {
      left -= byteLength;
      if (left < 0) throw new Error("the limit is reached");
    },
  });
  // A client that sends more is disconnected. One that has disconnected itself is no error.
  const discarding = body.pipeTo(nowhere).catch(() => undefined);
  await withTimeout(DISCARDED_BODY_MAX_MS, discarding);
}

/** Without an AbortSignal: the platform acts on it only when the next bytes arrive, which may never happen. */
async function withTimeout<Value>(ms: number, reading: Promise<Value>): Promise<Value | "late"> {
  const { promise: late, resolve } = Promise.withResolvers<"late">();
  const timer = setTimeout(resolve, ms, "late");
  try {
    return await Promise.race([reading, late]);
  } finally {
    clearTimeout(timer);
    // A read that is late goes on until the request ends, and its failure concerns no one.
    reading.catch(() => undefined);
  }
}
