/** The newest requests that were answered with an error. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { CaptureSummary } from "../../../protocol/schemas/inspector/captures.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { load } from "../../api/session.ts";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { formatMs } from "../../ui/numbers.ts";
import { formatListedPath } from "../../ui/text/listed-path.ts";
import { RequestsLink } from "../../inspector/requests-link.tsx";
import { Badge, Detail, Row, Rows, Section } from "../../ui/section.tsx";
import { RelativeTime } from "../../ui/time.tsx";

const FAILURES_SHOWN = 5;
const FAILURES_RELOAD_MS = 15_000;

const failuresQuery = queryOptions({
  queryKey: ["requests", "failures"],
  queryFn({ signal }) {
    const query = new URLSearchParams({ status: "5xx", limit: String(FAILURES_SHOWN) });
    return load<CaptureSummary[]>(`/inspector?${query}`, signal);
  },
  refetchInterval: FAILURES_RELOAD_MS,
});

export function FailureSection({ tunnels }: { tunnels: readonly Tunnel[] }) {
  const failures = useQuery(failuresQuery);
  const all = <RequestsLink filter="status:5xx">All failed requests</RequestsLink>;
  return (
    <Section title="Latest failed requests" actions={all}>
      <QueryContent query={failures} lines={2}>
        {(list) =>
          list.length === 0 ? (
            <p className="hint">No captured request was answered with an error.</p>
          ) : (
            <Rows>
              {list.map((request) => (
                <FailureRow
                  key={request.id}
                  request={request}
                  tunnel={tunnels.find(({ id }) => id === request.tunnel_id)}
                />
              ))}
            </Rows>
          )
        }
      </QueryContent>
    </Section>
  );
}

interface RowProps {
  request: CaptureSummary;
  tunnel: Tunnel | undefined;
}

function FailureRow({ request, tunnel }: RowProps) {
  const { id, method, path, status, error, latency_ms: latency, timestamp } = request;
  return (
    <Row actions={<RelativeTime timestamp={timestamp} />}>
      <div className="failed-request">
        <Badge tone="bad">{status}</Badge>
        <Link to="/requests/$id" params={{ id }} className="request" title={path}>
          <bdi>
            {method} {formatListedPath(path)}
          </bdi>
        </Link>
      </div>
      <Detail>
        {[
          tunnel?.name,
          error?.replaceAll("_", " ") ?? "answered by the local server",
          latency === null ? undefined : formatMs(latency),
        ]
          .filter((part) => part !== undefined)
          .join(" · ")}
      </Detail>
    </Row>
  );
}
