/** The options of `expose()` that correspond to `PUBLIC_TUNNEL_OPTIONS`. */
import { describeIssue, formatPath } from "../../protocol/schemas/issue-messages.ts";
import { TrafficPolicy } from "../../protocol/schemas/access/policies.ts";
import type { TunnelOptions } from "../http-tunnel.ts";
import { UsageError } from "../options.ts";
import type { ExposeOptions } from "../library/types.ts";
import { checkAddedHeader } from "../origin/added-headers.ts";
import { parseBasicAuth } from "./basic-auth.ts";
import { parsePublicUrl } from "./options.ts";

/** @throws TypeError */
export function parsePublicOptions({
  subdomain,
  url,
  basicAuth,
  policy,
  headers,
}: ExposeOptions): Pick<TunnelOptions, "host" | "gates" | "addedHeaders"> {
  if (subdomain !== undefined && url !== undefined)
    throw new TypeError("expose() needs subdomain or url, not both");
  return asTypeError(() => ({
    host: url === undefined ? undefined : parsePublicUrl(url, "url"),
    gates: {
      basicAuth: basicAuth === undefined ? undefined : parseBasicAuth(basicAuth, "basicAuth"),
      policy: policy === undefined ? undefined : parsePolicy(policy),
    },
    addedHeaders: Object.entries(headers ?? {}).map((header) =>
      checkAddedHeader(header, "headers"),
    ),
  }));
}

function parsePolicy(policy: object): TrafficPolicy {
  const parsed = TrafficPolicy.safeParse(policy, { error: describeIssue });
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0]!;
  throw new UsageError(`${["policy", formatPath(path)].filter(Boolean).join(".")} ${message}`);
}

/** A program's mistake is a TypeError. The command's parsers throw a `UsageError`. */
function asTypeError<Result>(parse: () => Result): Result {
  try {
    return parse();
  } catch (error) {
    if (error instanceof UsageError) throw new TypeError(`expose(): ${error.message}`);
    throw error;
  }
}
