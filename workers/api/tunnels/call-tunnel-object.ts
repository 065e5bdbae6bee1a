/** Calls of a tunnel's object by routes that return its answer. */
import { ApiError } from "../../errors.ts";

/** @throws ApiError `unavailable` when the call fails: an object that restarts aborts its calls, and the caller can try again. */
export async function callTunnelObject<Answer>(call: Promise<Answer>): Promise<Answer> {
  try {
    return await call;
  } catch (cause) {
    const message = "The tunnel's data cannot be reached right now. Try again.";
    throw new ApiError("unavailable", message, { cause });
  }
}
