/** The content of a query: a skeleton while it loads, an error with a button to try again, or the data. */
import type { UseQueryResult } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { isNotFound } from "../../api/request.ts";
import { ErrorNotice } from "./error-notice.tsx";
import { Skeleton } from "./skeleton.tsx";

interface QueryContentProps<Data> {
  query: UseQueryResult<Data>;
  /** How many lines the skeleton has: about as many as the content, so that the page does not jump. */
  lines?: number;
  /** Shown if the selected organization does not have it. */
  missing?: ReactNode;
  children: (data: Data) => ReactNode;
}

export function QueryContent<Data>(props: QueryContentProps<Data>) {
  const { query, lines = 3, missing, children } = props;
  const error = useLatestError(query);
  // Data that was loaded before stays visible when loading it again fails.
  if (query.data !== undefined) return children(query.data);
  if (missing !== undefined && isNotFound(error)) return missing;
  if (error === null) return <Skeleton lines={lines} />;
  const retry = () => void query.refetch();
  return <ErrorNotice error={error} onRetry={retry} isRetrying={query.isFetching} />;
}

/** While a query without data is loaded again, it has no error. The message stays until the outcome is known. */
function useLatestError({ error, errorUpdateCount }: UseQueryResult<unknown>): Error | null {
  const [latest, setLatest] = useState(error);
  if (error !== null && error !== latest) setLatest(error);
  return errorUpdateCount > 0 ? latest : null;
}
