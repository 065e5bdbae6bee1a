/** The cache of the API's responses. */
import { QueryClient, type Query } from "@tanstack/react-query";
import { isTemporaryError } from "../api/request.ts";
import { isReloadDue } from "./reload-due.ts";

const RETRIES_MAX = 3;
const RELOAD_INTERVAL_MS = 5_000;

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (failures, error) => failures < RETRIES_MAX && isTemporaryError(error),
    },
  },
});

/** Loads the data of the page that could not be loaded again, until the server returns it. Call it once. */
export function reloadAfterFailures(): void {
  setInterval(() => {
    if (document.visibilityState === "hidden") return;
    void queryClient.refetchQueries({
      type: "active",
      predicate: ({ state }) => isReloadDue(state, Date.now()),
    });
  }, RELOAD_INTERVAL_MS);
}

/** Whether the page shows data that it could not load again, because the server does not answer. */
export function isServerUnresponsive(): boolean {
  return queryClient.getQueryCache().getAll().some(isOutdated);
}

function isOutdated(query: Query): boolean {
  const { data, error, fetchFailureReason } = query.state;
  return data !== undefined && query.isActive() && isTemporaryError(fetchFailureReason ?? error);
}
