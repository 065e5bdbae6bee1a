/** Calls to Durable Objects whose answer a request needs. */
import { ApiError } from "./errors.ts";

/** An object that restarts answers again at once. */
const OBJECT_RETRY_AFTER_SECONDS = 2;

/**
 * @throws ApiError `unavailable` when the call fails: an object that restarts aborts its calls, and the caller can try
 * again.
 */
export async function callObject<Answer>(call: Promise<Answer>): Promise<Answer> {
  try {
    return await call;
  } catch (cause) {
    const message = "A part of the service can't be reached right now. Try again in a moment.";
    const retryAfterSeconds = OBJECT_RETRY_AFTER_SECONDS;
    throw new ApiError("unavailable", message, { retryAfterSeconds, cause });
  }
}
