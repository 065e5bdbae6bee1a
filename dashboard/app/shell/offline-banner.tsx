/** Says that the browser has no network, or that the server does not answer. It disappears when the server answers again. */
import { onlineManager } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { isServerUnresponsive, queryClient } from "../query-client.ts";

export function OfflineBanner() {
  const isOnline = useSyncExternalStore(
    (notify) => onlineManager.subscribe(notify),
    () => onlineManager.isOnline(),
  );
  const isUnresponsive = useSyncExternalStore(
    (notify) => queryClient.getQueryCache().subscribe(notify),
    isServerUnresponsive,
  );
  if (isOnline && !isUnresponsive) return null;
  return (
    <p role="status" className="notice warning">
      {isOnline
        ? "The server does not answer. The page shows what it had loaded, and continues when the server is back."
        : "You are offline. The page shows what it had loaded, and continues when the network is back."}
    </p>
  );
}
