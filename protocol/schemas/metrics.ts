/** The traffic of an organization's tunnels, and its cost. */
import { z } from "zod";
import { Instant, PageQuery } from "./scalars.ts";
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

export const SeriesQuery = z.object({ metric: Metric, window: MetricWindow.default("24h") });
/** `timestamp` is when the bucket starts. */
export const SeriesPoint = z.object({ timestamp: Instant, value: z.number() });
export type SeriesPoint = z.infer<typeof SeriesPoint>;

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
    .regex(/^2\d{3}-(0[1-9]|1[0-2])$/, "must be a month such as 2026-11")
    .optional()
    .describe("Default: the current month."),
});
