/** Calls of Durable Objects whose answer a request needs. */
import { ApiError } from "./errors.ts";

/** @throws ApiError `unavailable` when the call fails: an object that restarts aborts its calls, and the caller can try again. */
export async function callObject<Answer>(call: Promise<Answer>): Promise<Answer> {
  try {
    return await call;
  } catch (cause) {
    const message = "The data cannot be reached right now. Try again.";
    throw new ApiError("unavailable", message, { cause });
  }
}
