/** One captured request with its response. */
import { useQuery } from "@tanstack/react-query";
import type { CaptureDetail } from "../../../../protocol/schemas/inspector/captures.ts";
import { call } from "../../../api/session.ts";
import { QueryContent } from "../../../ui/feedback/query-content.tsx";

export interface RequestDetailProps {
  id: string;
}

export function RequestDetail({ id }: RequestDetailProps) {
  const query = useQuery({
    queryKey: ["inspector", id],
    queryFn: ({ signal }) => call<CaptureDetail>("GET", `/inspector/${id}`, undefined, signal),
  });
  return (
    <QueryContent query={query}>
      {({ method, path, status }) => (
        <h2>
          {method} <bdi>{path}</bdi> {status}
        </h2>
      )}
    </QueryContent>
  );
}
