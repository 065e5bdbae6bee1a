/** When data that could not be loaded is loaded again without a click. */
import { SECOND_MS } from "../../shared/time.ts";
import { isTemporaryError, RequestError } from "../api/request.ts";

/** The part of a query's state that decides. */
interface LoadState {
  fetchStatus: "fetching" | "paused" | "idle";
  error: Error | null;
  /** When the latest error occurred, in milliseconds. */
  errorUpdatedAt: number;
}

/** Not before the time that the server has set: earlier requests would be refused too. */
export function isReloadDue(
  { fetchStatus, error, errorUpdatedAt }: LoadState,
  nowMs: number,
): boolean {
  if (fetchStatus !== "idle" || !(error instanceof RequestError)) return false;
  const { code, retryAfterSeconds = 0 } = error;
  const canSucceed = code === "rate_limited" || isTemporaryError(error);
  return canSucceed && nowMs >= errorUpdatedAt + retryAfterSeconds * SECOND_MS;
}
