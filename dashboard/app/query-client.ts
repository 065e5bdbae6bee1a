/** The cache of the API's responses. */
import { QueryClient } from "@tanstack/react-query";
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

/** Whether the same request can succeed a moment later. */
function isTemporary(error: unknown): boolean {
  return error instanceof RequestError && ["unreachable", "unavailable"].includes(error.code);
}
