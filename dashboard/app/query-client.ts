/** The cache of the API's responses. */
import { QueryClient, type Query } from "@tanstack/react-query";
import { RequestError } from "../api/request.ts";

const RETRIES_MAX = 3;

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (failures, error) => failures < RETRIES_MAX && isTemporary(error),
    },
  },
});

/** Whether the page shows older data, because the server does not answer. */
export function isServerSilent(): boolean {
  return queryClient.getQueryCache().getAll().some(isOutdated);
}

function isOutdated(query: Query): boolean {
  const { data, error, fetchFailureReason } = query.state;
  return data !== undefined && query.isActive() && isTemporary(fetchFailureReason ?? error);
}

/** Whether the same request can succeed a moment later. */
function isTemporary(error: unknown): boolean {
  return error instanceof RequestError && ["unreachable", "unavailable"].includes(error.code);
}
