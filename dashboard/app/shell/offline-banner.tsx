/** Says that the browser has no network, and disappears when it has one again. */
import { onlineManager } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";

export function OfflineBanner() {
  const isOnline = useSyncExternalStore(
    (notify) => onlineManager.subscribe(notify),
    () => onlineManager.isOnline(),
  );
  if (isOnline) return null;
  return (
    <p role="status" className="notice warning">
      You are offline. The page shows what it had loaded, and continues when the network is back.
    </p>
  );
}
