/** The traffic by tunnel and path, and its statuses, errors and latencies. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { STATUS_BY_CODE } from "../../../protocol/errors.ts";
import type { Breakdown, StatusClass } from "../../../protocol/schemas/metrics.ts";
import { breakdownQuery, type TrafficSelection } from "../../api/metrics.ts";
import { tunnelsQuery } from "../../api/tunnels.ts";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import {
  formatBytes,
  formatCount,
  formatMs,
  formatPercent,
  formatQuantity,
} from "../../ui/numbers.ts";
import { formatFilterTerm } from "../../inspector/filter-text.ts";
import { RequestsLink } from "../../inspector/requests-link.tsx";
import { Section } from "../../ui/section.tsx";
import type { Tone } from "../../ui/figures/tone.ts";
import { Table } from "../../ui/table.tsx";
import { formatListedPath } from "../../ui/text/listed-path.ts";
import { BarList } from "./bar-list.tsx";
import { findPercentileMs, trimBuckets } from "./latency-histogram.ts";

interface SectionProps {
  breakdown: Breakdown;
  selection: TrafficSelection;
}

export function BreakdownSections({ selection }: { selection: TrafficSelection }) {
  const query = useQuery(breakdownQuery(selection));
  return (
    <QueryContent query={query} lines={8}>
      {(breakdown) => (
        <>
          <div className="metrics-grid">
            <StatusSection breakdown={breakdown} selection={selection} />
            <ErrorSection breakdown={breakdown} selection={selection} />
            <LatencySection breakdown={breakdown} />
            <TunnelSection breakdown={breakdown} selection={selection} />
          </div>
          <PathSection breakdown={breakdown} selection={selection} />
          <CoverageNote breakdown={breakdown} />
        </>
      )}
    </QueryContent>
  );
}

/** Which requests the numbers are based on, and which they leave out. */
function CoverageNote({ breakdown }: { breakdown: Breakdown }) {
  const { captured_requests: count, is_complete: isComplete } = breakdown;
  return (
    <p className="hint basis">
      Responses, errors, latency and paths are those of {isComplete ? "the" : "the newest"}{" "}
      {formatQuantity(count, "captured request")} of this period. TCP tunnels, and tunnels that do
      not capture requests, are not included.
    </p>
  );
}

const STATUS_TONES: Record<StatusClass, Tone> = {
  "1xx": "neutral",
  "2xx": "good",
  "3xx": "neutral",
  "4xx": "warning",
  "5xx": "bad",
  none: "neutral",
};

const STATUS_TITLES: Record<StatusClass, string> = {
  "1xx": "1xx, WebSockets",
  "2xx": "2xx, success",
  "3xx": "3xx, redirects and not modified",
  "4xx": "4xx, refused or not found",
  "5xx": "5xx, errors",
  none: "No response",
};

function StatusSection({ breakdown: { statuses }, selection }: SectionProps) {
  const seen = statuses.filter(({ requests }) => requests > 0);
  return (
    <Section title="Responses">
      <SectionContent isEmpty={seen.length === 0} text="No captured requests in this period.">
        <BarList
          label="Requests by status"
          entries={seen.map(({ status, requests }) => ({
            key: status,
            label:
              status === "none" ? (
                STATUS_TITLES[status]
              ) : (
                <RequestsLink filter={`status:${status}`} tunnelId={selection.tunnelId}>
                  {STATUS_TITLES[status]}
                </RequestsLink>
              ),
            count: requests,
            tone: STATUS_TONES[status],
          }))}
        />
      </SectionContent>
    </Section>
  );
}

function ErrorSection({ breakdown, selection }: SectionProps) {
  const serviceErrors = breakdown.errors.map(({ error, requests }) => ({
    cause: error.replaceAll("_", " "),
    filter: `error:${error}`,
    requests,
  }));
  const causes = [
    {
      cause: "5xx of the local server",
      filter: "status:5xx",
      requests: countLocalServerErrors(breakdown),
    },
    ...serviceErrors,
  ].filter(({ requests }) => requests > 0);
  return (
    <Section title="Errors by cause">
      <SectionContent isEmpty={causes.length === 0} text="No errors among the captured requests.">
        <BarList
          label="Requests by cause of the error"
          entries={causes.map(({ cause, filter, requests }) => ({
            key: filter,
            label: (
              <RequestsLink filter={filter} tunnelId={selection.tunnelId}>
                {cause}
              </RequestsLink>
            ),
            count: requests,
            tone: "bad",
          }))}
        />
      </SectionContent>
    </Section>
  );
}

/** Responses with a status of 5xx that a local server sent: all of them, less those of the service itself. */
function countLocalServerErrors({ statuses, errors }: Breakdown): number {
  const all = statuses.find(({ status }) => status === "5xx")?.requests ?? 0;
  const sentByService = errors
    .filter(({ error }) => STATUS_BY_CODE[error] >= 500)
    .reduce((sum, { requests }) => sum + requests, 0);
  return Math.max(0, all - sentByService);
}

function LatencySection({ breakdown: { latency } }: { breakdown: Breakdown }) {
  const buckets = trimBuckets(latency);
  const percentiles = [0.5, 0.95, 0.99].map((ratio) => {
    const ms = findPercentileMs(latency, ratio);
    const limit = ms === null ? "over a minute" : `within ${formatMs(ms)}`;
    return `${formatPercent(ratio)} ${limit}`;
  });
  return (
    <Section title="Latency">
      <SectionContent
        isEmpty={buckets.length === 0}
        text="No responses of local servers in this period."
      >
        <p className="hint">{percentiles.join(" · ")}</p>
        <BarList
          label="Responses by latency"
          entries={buckets.map(({ up_to_ms: bound, requests }) => ({
            key: bound ?? "more",
            label: bound === null ? "longer" : `up to ${formatMs(bound)}`,
            count: requests,
          }))}
        />
      </SectionContent>
    </Section>
  );
}

function TunnelSection({ breakdown: { tunnels }, selection }: SectionProps) {
  const { data: existing = [] } = useQuery(tunnelsQuery);
  if (selection.tunnelId !== "") return null;
  const names = new Map(existing.map(({ id, name }) => [id, name]));
  return (
    <Section title="Busiest tunnels">
      <SectionContent isEmpty={tunnels.length === 0} text="No traffic in this period.">
        <BarList
          label="Requests by tunnel"
          entries={tunnels.map((tunnel) => ({
            key: tunnel.tunnel_id,
            label: names.has(tunnel.tunnel_id) ? (
              <Link to="/tunnels/$id" params={{ id: tunnel.tunnel_id }}>
                {names.get(tunnel.tunnel_id)}
              </Link>
            ) : (
              `${tunnel.subdomain}, deleted`
            ),
            detail: formatBytes(tunnel.bytes_in + tunnel.bytes_out),
            count: tunnel.requests,
          }))}
        />
      </SectionContent>
    </Section>
  );
}

function PathSection({ breakdown: { paths }, selection }: SectionProps) {
  const { data: tunnels = [] } = useQuery(tunnelsQuery);
  const getName = (id: string) => tunnels.find((tunnel) => tunnel.id === id)?.name ?? "";
  return (
    <Section title="Busiest paths">
      <SectionContent isEmpty={paths.length === 0} text="No captured requests in this period.">
        <Table
          caption="Busiest paths"
          entries={paths}
          getKey={({ tunnel_id: id, path }) => `${id} ${path}`}
          columns={[
            {
              title: "Path",
              render: ({ path, tunnel_id: tunnelId }) => (
                <div className="path-cell">
                  <RequestsLink filter={formatFilterTerm("path", path)} tunnelId={tunnelId}>
                    <bdi title={path}>{formatListedPath(path)}</bdi>
                  </RequestsLink>
                  {selection.tunnelId === "" && <span className="hint">{getName(tunnelId)}</span>}
                </div>
              ),
            },
            { title: "Requests", align: "end", render: ({ requests }) => formatCount(requests) },
            {
              title: "5xx",
              align: "end",
              render: ({ failed_requests: failed, requests }) =>
                failed === 0 ? "–" : formatPercent(failed / requests),
            },
            {
              title: "Mean latency",
              align: "end",
              render: ({ average_latency_ms: ms }) => (ms === null ? "–" : formatMs(ms)),
            },
          ]}
        />
      </SectionContent>
    </Section>
  );
}

interface SectionContentProps {
  isEmpty: boolean;
  /** Shown instead of the children when the section is empty. */
  text: string;
  children: ReactNode;
}

function SectionContent({ isEmpty, text, children }: SectionContentProps) {
  return isEmpty ? <p className="hint">{text}</p> : children;
}
