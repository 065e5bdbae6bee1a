/** The content of a query: a skeleton while it loads, an error with a button to try again, or the data. */
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { isNotFound } from "../../api/request.ts";
import { ErrorNotice } from "./error-notice.tsx";

export interface QueryContentProps<Data> {
  query: UseQueryResult<Data>;
  /** How many lines the skeleton has: about as many as the content, so that the page does not jump. */
  lines?: number;
  /** Shown if the selected organization does not have it. */
  missing?: ReactNode;
  children: (data: Data) => ReactNode;
}

export function QueryContent<Data>(props: QueryContentProps<Data>) {
  const { query, lines = 3, missing, children } = props;
  // Data that was loaded before stays visible when loading it again fails.
  if (query.data !== undefined) return children(query.data);
  if (missing !== undefined && isNotFound(query.error)) return missing;
  if (query.isError) {
    return <ErrorNotice error={query.error} onRetry={() => void query.refetch()} />;
  }
  return <Skeleton lines={lines} />;
}

export function Skeleton({ lines = 3 }: { lines?: number }) {
  return (
    <div className="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => (
        <div key={line} />
      ))}
    </div>
  );
}
