/** What failed, in place of the content that could not be loaded. */
import { getErrorMessage, RequestError } from "../../api/request.ts";
import { Button } from "../button.tsx";
import { UpgradeHint } from "./upgrade-hint.tsx";

export interface ErrorNoticeProps {
  error: unknown;
  onRetry: () => void;
}

export function ErrorNotice({ error, onRetry }: ErrorNoticeProps) {
  const requestId = error instanceof RequestError ? error.requestId : null;
  return (
    <div className="notice bad" role="alert">
      <p>
        {getErrorMessage(error)}
        <UpgradeHint error={error} />
      </p>
      {requestId !== null && (
        <p className="hint">
          Request <code>{requestId}</code>
        </p>
      )}
      <div className="actions">
        <Button onClick={onRetry}>Try again</Button>
      </div>
    </div>
  );
}
