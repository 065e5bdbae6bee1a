/** A page that could not be loaded at all. While the server can't be reached, it tries again by itself. */
import { useEffect } from "react";
import { isTemporaryError } from "../../api/request.ts";
import { ErrorNotice, type ErrorNoticeProps } from "./error-notice.tsx";
import { Step } from "../step.tsx";

const RETRY_INTERVAL_MS = 5_000;

export function ErrorPage({ error, onRetry }: ErrorNoticeProps) {
  const isTemporary = isTemporaryError(error);
  useEffect(() => {
    if (!isTemporary) return undefined;
    const timer = setInterval(onRetry, RETRY_INTERVAL_MS);
    addEventListener("online", onRetry);
    return () => {
      clearInterval(timer);
      removeEventListener("online", onRetry);
    };
  }, [isTemporary, onRetry]);
  return (
    <Step title="Something went wrong">
      <ErrorNotice error={error} onRetry={onRetry} />
    </Step>
  );
}
