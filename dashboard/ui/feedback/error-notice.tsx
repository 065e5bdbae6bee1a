/** An error message in place of the content that could not be loaded. */
import { getUserMessage, RequestError } from "../../api/request.ts";
import { Button } from "../button.tsx";
import { isLoadError, PageLoadError } from "./load-error.ts";
import { LoadErrorNotice } from "./load-error-notice.tsx";
import { UpgradeHint } from "./upgrade-hint.tsx";

/** The same request is refused again, at least until an admin has changed the role. */
const FINAL_CODES: readonly RequestError["code"][] = ["forbidden", "invalid_token"];

export interface ErrorNoticeProps {
  error: unknown;
  onRetry: () => void;
  /** While it is loaded again. */
  isRetrying?: boolean;
}

export function ErrorNotice({ error, onRetry, isRetrying = false }: ErrorNoticeProps) {
  if (isLoadError(error)) return <LoadErrorNotice isWholePage={error instanceof PageLoadError} />;
  const requestId = error instanceof RequestError ? error.requestId : null;
  const canSucceed = !(error instanceof RequestError && FINAL_CODES.includes(error.code));
  return (
    <div className="notice bad" role="alert">
      <p>
        {getUserMessage(error)}
        <UpgradeHint error={error} />
      </p>
      {requestId !== null && (
        <p className="hint">
          Request <code>{requestId}</code>
        </p>
      )}
      {canSucceed && (
        <div className="actions">
          <Button isBusy={isRetrying} onClick={onRetry}>
            Try again
          </Button>
        </div>
      )}
    </div>
  );
}
