/** Traffic policies: the actions on a visitor's request before it is forwarded to the agent. */
import { z } from "zod";
import { isSettableByPolicy } from "../../header-names.ts";
import { HEADER_NAME_MAX_CHARS } from "../../limits.ts";
import { FIELD_NAME_RULE, ONE_LINE_RULE, STORABLE_RULE, WholeNumber } from "../scalars.ts";

const POLICY_MAX_ACTIONS = 16;
const POLICY_MAX_ISSUERS = 10;
const POLICY_MAX_AUDIENCES = 20;
const HEADER_VALUE_MAX_CHARS = 4_096;
const PATH_PREFIX_MAX_CHARS = 512;
const ISSUER_MAX_CHARS = 512;
const AUDIENCE_MAX_CHARS = 512;
const REQUESTS_PER_MINUTE_MAX = 1_000_000;

/** The name of a header that a tunnel's owner may set. */
export const SettableName = z
  .string()
  .max(HEADER_NAME_MAX_CHARS)
  .regex(...FIELD_NAME_RULE)
  .refine(isSettableByPolicy, "must not be a header that the connection or this service controls")
  .describe(
    "Not a header that the connection or the service controls, such as `Host`, `Connection`, `Content-Length`, `X-Forwarded-For` or `underpass-…`.",
  );
export const HeaderValue = z
  .string()
  .max(HEADER_VALUE_MAX_CHARS)
  .regex(...ONE_LINE_RULE);

const HeaderSet = z.object({
  kind: z.literal("header_set"),
  name: SettableName,
  value: HeaderValue,
});

/** Segments end at `/`, and to some servers at `\\`; a segment's parameters begin at `;`. All may be encoded. */
const SEGMENT_END = /[/\\]|%2f|%5c/i;
const PARAMETERS = /(?:;|%3b).*$/i;
const isDots = (segment: string) => segment === "." || segment === "..";

/**
 * The path without the segments `.` and `..`, as clients send it. A `.` at the end of a prefix is not such a segment: it
 * begins the names of hidden files.
 */
function resolveDots(prefix: string): string {
  const segments = prefix.split(SEGMENT_END);
  const plain = segments.map((segment) => segment.replaceAll(/%2e/gi, ".").replace(PARAMETERS, ""));
  const last = plain.length - 1;
  if (!plain.some((segment, at) => (at === last ? segment === ".." : isDots(segment))))
    return prefix;
  const resolved: string[] = [];
  plain.forEach((segment, at) => {
    if (segment === ".." && resolved.length > 1) resolved.pop();
    if (!isDots(segment)) resolved.push(segments[at]!);
    else if (at === last) resolved.push("");
  });
  return resolved.join("/");
}

const Deny = z.object({
  kind: z.literal("deny"),
  path_prefix: z
    .string()
    .max(PATH_PREFIX_MAX_CHARS)
    .startsWith("/", 'must start with "/"')
    .regex(/^[^?#]*$/, "must be a path without query and fragment")
    .regex(...ONE_LINE_RULE)
    .refine((prefix) => resolveDots(prefix) === prefix, {
      error: ({ input }) =>
        `must be written as ${resolveDots(String(input))}, without the segments "." and ".."`,
    }),
});

/** Compared exactly with the issuer of a token. Its discovery document is below this URL. */
const Issuer = z
  .url({ protocol: /^https?$/, error: "must be a URL that starts with https://" })
  .max(ISSUER_MAX_CHARS)
  .regex(/^[^?#@\s]*$/, "must not contain a query, a fragment, a user or spaces")
  .regex(...ONE_LINE_RULE)
  .meta({ format: "uri" });

const JwtValidation = z.object({
  kind: z.literal("jwt_validation"),
  allowed_issuers: z
    .array(Issuer)
    .min(1)
    .max(POLICY_MAX_ISSUERS)
    .optional()
    .describe("Default: this service, with tokens that it minted for this tunnel."),
  allowed_audiences: z
    .array(
      z
        .string()
        .min(1)
        .max(AUDIENCE_MAX_CHARS)
        .regex(...STORABLE_RULE),
    )
    .min(1)
    .max(POLICY_MAX_AUDIENCES)
    .optional()
    .describe("Default: any audience."),
  forward_token: z
    .boolean()
    .optional()
    .describe("Whether the local server receives the `Authorization` header. Default: false."),
});

const RateLimit = z.object({
  kind: z.literal("rate_limit"),
  requests_per_minute: WholeNumber(1, REQUESTS_PER_MINUTE_MAX),
  per_client_ip: z.boolean().default(false).describe("Default: all visitors together."),
});

export const PolicyAction = z.discriminatedUnion("kind", [
  HeaderSet,
  Deny,
  JwtValidation,
  RateLimit,
]);
export type PolicyAction = z.output<typeof PolicyAction>;
export type JwtValidation = z.output<typeof JwtValidation>;
export type RateLimit = z.output<typeof RateLimit>;

const ONCE_EACH = ["jwt_validation", "rate_limit"] as const;

/** For the document. */
const containsAtMostOne = (kind: string) => ({
  contains: { properties: { kind: { const: kind } } },
  minContains: 0,
  maxContains: 1,
});

export const TrafficPolicy = z.object({
  actions: z
    .array(PolicyAction)
    .max(POLICY_MAX_ACTIONS)
    .superRefine((actions, context) => {
      for (const kind of ONCE_EACH) {
        actions.forEach((action, index) => {
          if (action.kind !== kind || actions.findIndex((it) => it.kind === kind) === index) return;
          const message = `must not be ${kind} again: a policy may have only one`;
          context.addIssue({ code: "custom", path: [index, "kind"], message });
        });
      }
    })
    .meta({ allOf: ONCE_EACH.map((kind) => containsAtMostOne(kind)) }),
});
export type TrafficPolicy = z.output<typeof TrafficPolicy>;

export const TunnelPolicy = z.object({ id: z.uuid(), policy: TrafficPolicy.nullable() });
