/** Requests and bytes over time: the sum of each, one of them as a chart, all of them as a table. */
import { useQueries } from "@tanstack/react-query";
import { useState } from "react";
import type { Metric, SeriesPoint } from "../../../protocol/schemas/metrics.ts";
import { seriesQuery, type TrafficSelection } from "../../api/metrics.ts";
import { useQueryParameters, useSetQueryParameters } from "../../app/query-parameters.ts";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { formatBytes, formatCount } from "../../ui/numbers.ts";
import { Section } from "../../ui/section.tsx";
import { Table } from "../../ui/table.tsx";
import { TrafficChart } from "./traffic-chart.tsx";
import { createBucketFormat } from "./windows.ts";

interface MetricView {
  metric: Metric;
  title: string;
  format: (value: number) => string;
  /** By default compact numbers. */
  formatAxis?: (value: number) => string;
}

const VIEWS: readonly [MetricView, ...MetricView[]] = [
  { metric: "requests", title: "Requests", format: formatCount },
  {
    metric: "bytes_in",
    title: "Received from visitors",
    format: formatBytes,
    formatAxis: formatBytes,
  },
  { metric: "bytes_out", title: "Sent to visitors", format: formatBytes, formatAxis: formatBytes },
];

/** @param text the parameter of the page's URL, which can be any text. */
export function parseMetric(text: string | undefined): Metric {
  return VIEWS.find(({ metric }) => metric === text)?.metric ?? VIEWS[0].metric;
}

function sumValues(points: readonly SeriesPoint[] | undefined): number {
  return points?.reduce((sum, { value }) => sum + value, 0) ?? 0;
}

export function TrafficSection({ selection }: { selection: TrafficSelection }) {
  const parameters = useQueryParameters();
  const setParameters = useSetQueryParameters();
  const queries = useQueries({
    queries: VIEWS.map(({ metric }) => seriesQuery(metric, selection)),
  });
  const selected = parseMetric(parameters.metric);
  const shown = VIEWS.findIndex(({ metric }) => metric === selected);
  const { title, format, formatAxis } = VIEWS[shown]!;
  return (
    <Section title="Traffic">
      <div className="metric-tabs" role="group" aria-label="Metric of the chart">
        {VIEWS.map((view, at) => (
          <button
            key={view.metric}
            type="button"
            aria-pressed={at === shown}
            onClick={() => setParameters({ metric: at === 0 ? "" : view.metric })}
          >
            <span className="name">{view.title}</span>{" "}
            <span className="number">
              {queries[at]?.data ? view.format(sumValues(queries[at].data)) : "–"}
            </span>
          </button>
        ))}
      </div>
      <QueryContent query={queries[shown]!} lines={12}>
        {(points) => (
          <>
            <TrafficChart
              title={title}
              points={points}
              window={selection.window}
              format={format}
              formatAxis={formatAxis}
            />
            <TrafficTable series={queries.map(({ data = [] }) => data)} selection={selection} />
          </>
        )}
      </QueryContent>
    </Section>
  );
}

interface TableProps {
  /** One for each view. */
  series: readonly (readonly SeriesPoint[])[];
  selection: TrafficSelection;
}

/** The rows are rendered when the table is opened. */
function TrafficTable({ series, selection }: TableProps) {
  const [isOpen, setOpen] = useState(false);
  const times = createBucketFormat(selection.window);
  const starts = series[0]?.map(({ timestamp }) => timestamp) ?? [];
  const entries = starts.map((timestamp, at) => ({ timestamp, at })).toReversed();
  return (
    <details className="chart-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Show as a table</summary>
      {isOpen && (
        <Table
          caption="Traffic over time, newest first"
          entries={entries}
          getKey={({ timestamp }) => timestamp}
          columns={[
            {
              title: "From",
              render: ({ timestamp }) => times.format(Date.parse(timestamp)),
            },
            ...VIEWS.map(({ title, format }, view) => ({
              title,
              align: "end" as const,
              render: ({ at }: { at: number }) => format(series[view]?.[at]?.value ?? 0),
            })),
          ]}
        />
      )}
    </details>
  );
}
