/** The cache of the API's responses. */
import { QueryClient, type Query } from "@tanstack/react-query";
import { isTemporaryError } from "../api/request.ts";

const RETRIES_MAX = 3;

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (failures, error) => failures < RETRIES_MAX && isTemporaryError(error),
    },
  },
});

/** Whether the page shows data that it could not load again, because the server does not answer. */
export function isServerUnresponsive(): boolean {
  return queryClient.getQueryCache().getAll().some(isOutdated);
}

function isOutdated(query: Query): boolean {
  const { data, error, fetchFailureReason } = query.state;
  return data !== undefined && query.isActive() && isTemporaryError(fetchFailureReason ?? error);
}
