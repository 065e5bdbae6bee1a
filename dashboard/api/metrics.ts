/** The traffic of the organization's tunnels, and its cost. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import type {
  Breakdown,
  Metric,
  Metrics,
  MetricWindow,
  OrganizationUsage,
  SeriesPoint,
} from "../../protocol/schemas/metrics.ts";
import { loadPages } from "./lists.ts";
import { load } from "./session.ts";

/** A tunnel reports its counters five seconds after a request, or once a minute during continuous traffic. */
const METRICS_RELOAD_MS = 10_000;
/** Usage is counted with the metrics, but costs more to sum. */
const USAGE_RELOAD_MS = 60_000;
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

function getUsagePath(parameters: Record<string, string>): string {
  return `/usage?${new URLSearchParams(parameters)}`;
}

/** The usage of a month, without that of each token. @param month `2026-11`, in UTC. */
export const usageQuery = (month: string) =>
  queryOptions({
    queryKey: ["usage", month],
    queryFn: ({ signal }) => load<OrganizationUsage>(getUsagePath({ month, limit: "1" }), signal),
    refetchInterval: USAGE_RELOAD_MS,
  });

/** The usage of a month with that of all tokens, newest first. */
export const tokenUsageQuery = (month: string) =>
  queryOptions({
    queryKey: ["usage", month, "tokens"],
    async queryFn({ signal }) {
      const pages: OrganizationUsage[] = [];
      const tokens = await loadPages(async (position) => {
        const page = await load<OrganizationUsage>(getUsagePath({ month, ...position }), signal);
        pages.push(page);
        return page.tokens;
      });
      return { ...pages[0]!, tokens };
    },
    placeholderData: keepPreviousData,
    refetchInterval: USAGE_RELOAD_MS,
  });

/** The current month in UTC, as the queries of usage take it. */
export function getCurrentMonth(): string {
  return new Date().toISOString().slice(0, 7);
}
