/** The traffic of the organization's tunnels, and its cost. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import type {
  Breakdown,
  Metric,
  Metrics,
  MetricWindow,
  OrganizationUsage,
  SeriesPoint,
} from "../../protocol/schemas/metrics.ts";
import { load } from "./session.ts";

/** A tunnel reports its counters five seconds after a request, or once a minute during continuous traffic. */
const METRICS_RELOAD_MS = 10_000;
/** Each breakdown asks up to a hundred objects. */
const BREAKDOWN_RELOAD_MS = 60_000;

export const metricsQuery = queryOptions({
  queryKey: ["metrics"],
  queryFn: ({ signal }) => load<Metrics>("/metrics", signal),
  refetchInterval: METRICS_RELOAD_MS,
});

export interface TrafficSelection {
  window: MetricWindow;
  /** Empty: all tunnels. */
  tunnelId: string;
}

export function getSeriesPath(metric: Metric, selection: TrafficSelection): string {
  return `/metrics/timeseries?${toQuery({ metric }, selection)}`;
}

export function getBreakdownPath(selection: TrafficSelection): string {
  return `/metrics/breakdown?${toQuery({}, selection)}`;
}

function toQuery(
  parameters: Record<string, string>,
  { window, tunnelId }: TrafficSelection,
): URLSearchParams {
  return new URLSearchParams({
    ...parameters,
    window,
    ...(tunnelId !== "" && { tunnel_id: tunnelId }),
  });
}

/** While another selection loads, the data of the previous one stays visible. */
export const seriesQuery = (metric: Metric, selection: TrafficSelection) =>
  queryOptions({
    queryKey: ["metrics", "series", metric, selection],
    queryFn: ({ signal }) => load<SeriesPoint[]>(getSeriesPath(metric, selection), signal),
    refetchInterval: METRICS_RELOAD_MS,
    placeholderData: keepPreviousData,
  });

export const breakdownQuery = (selection: TrafficSelection) =>
  queryOptions({
    queryKey: ["metrics", "breakdown", selection],
    queryFn: ({ signal }) => load<Breakdown>(getBreakdownPath(selection), signal),
    refetchInterval: BREAKDOWN_RELOAD_MS,
    placeholderData: keepPreviousData,
  });

const USAGE_PAGE_ROWS = 100;

/** The usage of a month, and of its tokens a page at a time. @param month `2026-11`, in UTC. */
export const usageQuery = (month: string) =>
  infiniteQueryOptions({
    queryKey: ["usage", month],
    initialPageParam: "",
    queryFn({ pageParam: after, signal }) {
      const limit = String(USAGE_PAGE_ROWS);
      const query = new URLSearchParams({ month, limit, ...(after !== "" && { after }) });
      return load<OrganizationUsage>(`/usage?${query}`, signal);
    },
    getNextPageParam: ({ tokens }) =>
      tokens.length < USAGE_PAGE_ROWS ? undefined : tokens.at(-1)?.id,
    placeholderData: keepPreviousData,
  });

/** The current month in UTC, as `usageQuery` takes it. */
export function getCurrentMonth(): string {
  return new Date().toISOString().slice(0, 7);
}
