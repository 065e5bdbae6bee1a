/** /metrics: the traffic of the organization's tunnels. /usage: its cost by the price list. */
import { z } from "zod";
import { formatMonth } from "../../../durable-objects/tunnel/metrics/spending.ts";
import {
  Breakdown,
  BreakdownQuery,
  Metrics,
  OrganizationUsage,
  SeriesPoint,
  SeriesQuery,
  UsageQuery,
} from "../../../protocol/schemas/metrics.ts";
import { refreshAndCountAgents } from "../../store/tunnels/object-sync.ts";
import { toSeries, getSpan } from "../../store/metrics/metric-windows.ts";
import { computeUsdCents } from "../../store/billing/plans.ts";
import { findInspectedTunnel } from "../../store/inspector/inspector.ts";
import { breakDownCaptures } from "../inspector/captures.ts";
import { buildBreakdown } from "./breakdown.ts";
import { EXPOSITION_TYPES } from "../../../shared/metrics/exposition.ts";
import { formatExposition } from "./prometheus.ts";
import {
  countTunnels,
  findCounters,
  findSeries,
  findSums,
  listBusiestTunnels,
  listTunnelTraffic,
} from "../../store/metrics/metrics.ts";
import { findSpending } from "../../store/tokens/spending.ts";
import { findUsage, listTokenUsage } from "../../store/metrics/usage.ts";
import { allow, allowOrAgent, allowRead, getOrgId } from "../guard.ts";
import { createRouter, jsonResponse, notFound, route } from "../route.ts";

export const metrics = createRouter();

metrics.openapi(
  route({
    operationId: "getMetrics",
    method: "get",
    path: "/metrics",
    summary: "Get the number of tunnels, and their traffic of the last 24 hours",
    guard: allow("metrics:read"),
    responses: { 200: jsonResponse("The numbers. Traffic is counted within seconds.", Metrics) },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { db, principal } = c.var;
    // First, because it updates the status of the tunnels.
    await refreshAndCountAgents(c.env, db, principal.orgId);
    const [tunnels, sums] = await Promise.all([
      countTunnels(db, principal.orgId),
      findSums(db, principal.orgId, getSpan("24h", Date.now())),
    ]);
    const body = {
      total_tunnels: tunnels.total,
      active_tunnels: tunnels.active,
      requests_last_24h: sums.requests,
      bytes_in_last_24h: sums.bytes_in,
      bytes_out_last_24h: sums.bytes_out,
    };
    return c.json(body, 200);
  },
);

metrics.openapi(
  route({
    operationId: "getTimeSeries",
    method: "get",
    path: "/metrics/timeseries",
    summary: "Get the traffic of tunnels over time",
    guard: allow("metrics:read"),
    query: SeriesQuery,
    responses: {
      200: jsonResponse(
        "The buckets, oldest first, including empty ones. The last bucket is not complete yet.",
        z.array(SeriesPoint),
      ),
    },
    failures: ["not_found"],
  }),
  async (c) => {
    const { db, principal } = c.var;
    const { metric, window, tunnel_id: tunnelId } = c.req.valid("query");
    if (tunnelId !== undefined && !(await findInspectedTunnel(db, principal.orgId, tunnelId))) {
      throw notFound("tunnel");
    }
    const span = getSpan(window, Date.now());
    const values = await findSeries(db, principal.orgId, { tunnelId, metric }, span);
    return c.json(toSeries(span, values), 200);
  },
);

metrics.openapi(
  route({
    operationId: "getBreakdown",
    method: "get",
    path: "/metrics/breakdown",
    summary: "Get the busiest tunnels and paths, errors and latencies",
    description:
      "Paths, statuses, errors and latencies are those of the newest captured requests: up to 5,000 of a tunnel, or of each of the hundred tunnels of the organization that were served most recently.",
    guard: allowRead("metrics:read"),
    query: BreakdownQuery,
    responses: { 200: jsonResponse("The traffic of the window, broken down.", Breakdown) },
    failures: ["not_found", "unavailable"],
  }),
  async (c) => {
    const { window, tunnel_id: tunnelId } = c.req.valid("query");
    const span = getSpan(window, Date.now());
    const captured = await breakDownCaptures(c, tunnelId, span.fromMs);
    const { db, principal } = c.var;
    const traffic = await listTunnelTraffic(db, principal.orgId, tunnelId, span);
    return c.json(buildBreakdown(traffic, captured), 200);
  },
);

metrics.openapi(
  route({
    operationId: "getPrometheusMetrics",
    method: "get",
    path: "/metrics/prometheus",
    summary: "Get metrics for Prometheus",
    description:
      "The bearer is an access token, or a capability token in base64, which is valid for longer and so suits a scraper.",
    guard: allowOrAgent("metrics:read"),
    responses: {
      200: {
        description: "The metrics of the caller's organization in the exposition format 0.0.4.",
        content: { "text/plain": { schema: z.string() } },
      },
    },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { db } = c.var;
    const orgId = getOrgId(c);
    const agents = await refreshAndCountAgents(c.env, db, orgId);
    const [tunnels, counters, busiest] = await Promise.all([
      countTunnels(db, orgId),
      findCounters(db, orgId),
      listBusiestTunnels(db, orgId),
    ]);
    const text = formatExposition({ tunnels, agents, counters, busiest });
    return c.text(text, 200, { "Content-Type": EXPOSITION_TYPES.prometheus });
  },
);

metrics.openapi(
  route({
    operationId: "getUsage",
    method: "get",
    path: "/usage",
    summary: "Get the usage of the organization and of each token in a month",
    guard: allow("usage:read"),
    query: UsageQuery,
    responses: {
      200: jsonResponse(
        "The usage, and its cost by the price list, which counts towards budgets.",
        OrganizationUsage,
      ),
    },
  }),
  async (c) => {
    const { db, principal } = c.var;
    const { month = formatMonth(Date.now()), ...page } = c.req.valid("query");
    const [usage, rows] = await Promise.all([
      findUsage(db, principal.orgId, month),
      listTokenUsage(db, principal.orgId, month, page),
    ]);
    const lineageIds = rows.map(({ lineageId }) => lineageId);
    const spent =
      rows.length > 0 ? await findSpending(db.query, lineageIds, month) : new Map<string, number>();
    const tokens = rows.map(({ lineageId, revokedAt, ...row }) => ({
      ...row,
      revoked: revokedAt !== null,
      costUsdCents: computeUsdCents(row),
      spentUsdCents: spent.get(lineageId) ?? 0,
    }));
    return c.json({ month, ...usage, costUsdCents: computeUsdCents(usage), tokens }, 200);
  },
);
