/** The traffic of an organization's tunnels, and its cost. */
import { z } from "zod";
import { ERROR_CODES } from "../errors.ts";
import { LISTED_PATH_MAX_CHARS } from "../limits.ts";
import { Instant, PageQuery, Uuid } from "./scalars.ts";
import { TOKEN_KINDS } from "./tokens.ts";

export const Metric = z.enum(["requests", "bytes_in", "bytes_out"]);
export type Metric = z.infer<typeof Metric>;
export const MetricWindow = z.enum(["1h", "24h", "7d", "30d"]);
export type MetricWindow = z.infer<typeof MetricWindow>;

export const Metrics = z.object({
  total_tunnels: z.int(),
  active_tunnels: z.int(),
  requests_last_24h: z.int().describe("The sums of the series of 24 hours."),
  bytes_in_last_24h: z.int(),
  bytes_out_last_24h: z.int(),
});
export type Metrics = z.infer<typeof Metrics>;

const InWindow = z.object({
  window: MetricWindow.default("24h"),
  tunnel_id: Uuid.optional().describe("Default: all tunnels of the organization."),
});

export const SeriesQuery = InWindow.extend({ metric: Metric });
/** `timestamp` is when the bucket starts. */
export const SeriesPoint = z.object({ timestamp: Instant, value: z.number() });
export type SeriesPoint = z.infer<typeof SeriesPoint>;

export const BreakdownQuery = InWindow;

export const StatusClass = z.enum(["1xx", "2xx", "3xx", "4xx", "5xx", "none"]);
export type StatusClass = z.infer<typeof StatusClass>;

/** The traffic of a window by tunnel, and the newest captured requests by what became of them. */
export const Breakdown = z.object({
  tunnels: z
    .array(
      z.object({
        tunnel_id: z.uuid(),
        subdomain: z.string(),
        requests: z.int(),
        bytes_in: z.int(),
        bytes_out: z.int(),
      }),
    )
    .describe("The tunnels with the most requests in the window, counted like the time series."),
  captured_requests: z
    .int()
    .describe("How many captured requests the fields that follow are based on."),
  is_complete: z
    .boolean()
    .describe("false: tunnels have older captured requests in the window, which are not counted."),
  statuses: z.array(
    z.object({
      status: StatusClass.describe("`none`: there was no response yet, or the visitor left."),
      requests: z.int(),
    }),
  ),
  errors: z
    .array(
      z.object({
        error: z.enum(ERROR_CODES),
        requests: z.int(),
      }),
    )
    .describe("Requests without a complete response of the local server, the most frequent first."),
  latency: z
    .array(
      z.object({
        up_to_ms: z.int().nullable().describe("null: longer than the step before."),
        requests: z.int(),
      }),
    )
    .describe("Responses of local servers by the time until their head. Not cumulative."),
  paths: z
    .array(
      z.object({
        tunnel_id: z.uuid(),
        path: z
          .string()
          .describe(`Without the query: its first ${LISTED_PATH_MAX_CHARS} characters.`),
        requests: z.int(),
        failed_requests: z.int().describe("Answered with a status of 500 or more."),
        average_latency_ms: z
          .int()
          .nullable()
          .describe("Until the head of local servers' responses; null without one."),
      }),
    )
    .describe("The paths with the most requests."),
});
export type Breakdown = z.infer<typeof Breakdown>;

/** The usage of one month, in UTC. */
const Usage = z.object({
  bytes: z.int().describe("In both directions together."),
  requests: z.int(),
  costUsdCents: z.int().describe("In whole cents, rounded down."),
});

const TokenUsage = Usage.extend({
  id: z.uuid(),
  nonce: z.string(),
  name: z.string(),
  kind: z.enum(TOKEN_KINDS),
  revoked: z.boolean(),
  monthlyBudgetUsdCents: z.int().nullable(),
  spentUsdCents: z
    .int()
    .describe(
      "Counted against the budget: includes the spending of the token's predecessors, and of a master key's tokens.",
    ),
});

export const OrganizationUsage = Usage.extend({
  month: z.string().describe("`2026-11`"),
  tokens: z.array(TokenUsage).describe("Newest first, a page at a time."),
});
export type OrganizationUsage = z.infer<typeof OrganizationUsage>;

export const UsageQuery = PageQuery.extend({
  month: z
    .string()
    .regex(/^2\d{3}-(0[1-9]|1[0-2])$/, "must be a month such as 2026-11, from 2000-01")
    .optional()
    .describe("Default: the current month."),
});
