/** In place of a page, or a part of one, whose code could not be loaded. Only another page load repeats an import. */
import { useCallback, useEffect, useRef, useState } from "react";
import type { SetupState } from "../../../protocol/schemas/accounts/devices.ts";
import { isTemporaryError, RequestError, send } from "../../api/request.ts";
import { Button } from "../button.tsx";
import { Skeleton } from "./skeleton.tsx";

const CHECK_INTERVAL_MS = 5_000;
const CHECK_MAX_MS = 5_000;
/** A page that fails again so soon after a reload does not reload by itself, so that it can't do so forever. */
const RELOAD_PAUSE_MS = 60_000;

type ServerState = "unknown" | "answers" | "unreachable";

interface LoadErrorNoticeProps {
  /** Nothing of the page is shown, so it is reloaded as soon as the server answers: it has no text that would be lost. */
  isWholePage: boolean;
}

export function LoadErrorNotice({ isWholePage }: LoadErrorNoticeProps) {
  const [server, setServer] = useState<ServerState>("unknown");
  const [isChecking, setChecking] = useState(false);
  const isBusy = useRef(false);

  const check = useCallback(async (isAutomatic: boolean) => {
    if (isBusy.current) return;
    isBusy.current = true;
    const answers = await isServerAnswering();
    isBusy.current = false;
    // Otherwise the browser would replace this page with its own error page.
    if (answers && !(isAutomatic && hasJustReloaded())) location.reload();
    setServer(answers ? "answers" : "unreachable");
  }, []);

  useEffect(() => {
    if (!isWholePage) return undefined;
    const checkAgain = () => void check(true);
    checkAgain();
    const timer = setInterval(checkAgain, CHECK_INTERVAL_MS);
    addEventListener("online", checkAgain);
    return () => {
      clearInterval(timer);
      removeEventListener("online", checkAgain);
    };
  }, [isWholePage, check]);

  async function retry(): Promise<void> {
    setChecking(true);
    await check(false);
    setChecking(false);
  }

  if (isWholePage && server === "unknown") return <Skeleton lines={6} />;
  return (
    <div className="notice bad" role="alert">
      <p>
        {server === "unreachable"
          ? new RequestError({}, null).message
          : "This could not be loaded. Check your connection, then reload the page."}
      </p>
      <div className="actions">
        <Button isBusy={isChecking} onClick={() => void retry()}>
          {server === "unreachable" ? "Try again" : "Reload the page"}
        </Button>
      </div>
    </div>
  );
}

async function isServerAnswering(): Promise<boolean> {
  try {
    await send<SetupState>("GET", "/setup", { signal: AbortSignal.timeout(CHECK_MAX_MS) });
    return true;
  } catch (error) {
    return error instanceof RequestError && !isTemporaryError(error);
  }
}

function hasJustReloaded(): boolean {
  const [navigation] = performance.getEntriesByType("navigation");
  const isReload = (navigation as PerformanceNavigationTiming | undefined)?.type === "reload";
  return isReload && performance.now() < RELOAD_PAUSE_MS;
}
