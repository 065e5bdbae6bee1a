/** The dry run of a traffic policy: what it would have done with requests that the tunnel has captured. */
import { z } from "zod";
import { CaptureSummary } from "../inspector/captures.ts";
import { Instant } from "../scalars.ts";
import { TrafficPolicy } from "./policies.ts";

const DRY_RUN_MAX_REQUESTS = 1_000;
export const DRY_RUN_MAX_EXAMPLES = 100;
export const DRY_RUN_PATH_MAX_CHARS = 512;

export const DryRunPolicy = TrafficPolicy.extend({
  limit: z
    .int()
    .min(1)
    .max(DRY_RUN_MAX_REQUESTS)
    .default(DRY_RUN_MAX_REQUESTS)
    .describe("How many requests are evaluated: the newest ones."),
});

const count = (description: string) => z.int().describe(description);

const DryRunRule = z.object({
  kind: z.string().describe("The kind of the action."),
  matched: count(
    "How many requests this action would have refused; for one that changes headers, how many it would have changed.",
  ),
  unknown: count("For how many requests the result of this action can't be known."),
});

const DryRunOutcome = z.enum(["allowed", "refused", "unknown"]);

const DryRunExample = CaptureSummary.pick({
  id: true,
  timestamp: true,
  method: true,
  status: true,
  client_ip: true,
}).extend({
  path: z.string().describe("Without the query, and cut after 512 characters."),
  outcome: DryRunOutcome.describe("What the policy would have done."),
  changed: z.boolean().describe("Whether the visitor got another result than this."),
  rule: z
    .int()
    .nullable()
    .describe("The index of the action that decided; null when none refused the request."),
  new_status: z
    .int()
    .nullable()
    .describe("The status of the refusal; null unless the policy would have refused the request."),
  reason: z
    .enum(["token", "other_check"])
    .nullable()
    .describe(
      "Why the outcome is unknown. `token`: the capture does not contain the visitor's token. `other_check`: the request was refused, but not by a traffic policy, so that the same check may refuse it again.",
    ),
});
export type DryRunExample = z.infer<typeof DryRunExample>;

export const PolicyDryRun = z.object({
  evaluated: count("The number of requests that were evaluated."),
  allowed: count("How many would have reached the local server."),
  refused: count("How many the policy would have refused."),
  unknown: count("For how many that can't be known from the capture."),
  changed: count("How many visitors would have got another result than they did."),
  since: Instant.nullable().describe(
    "When the oldest evaluated request was received; null without a request.",
  ),
  rules: z.array(DryRunRule).describe("One for each action, in their order."),
  examples: z
    .array(DryRunExample)
    .max(DRY_RUN_MAX_EXAMPLES)
    .describe(
      "Requests that would get another result, then others that would be refused or are unknown; newest first.",
    ),
});
export type PolicyDryRun = z.infer<typeof PolicyDryRun>;
