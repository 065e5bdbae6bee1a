import { listTunnelArguments } from "../list-arguments.ts";
import {
  CaptureFilterError,
  parseCaptureFilter,
  type CaptureExpression,
} from "../../../../protocol/captures/filter.ts";
import { UsageError } from "../../../options.ts";
import { API_OPTIONS } from "../../../options/access-options.ts";
import { JSON_OPTION, type CommandSpec } from "../../command.ts";
import { explainError } from "../../../error-message.ts";
import { parseSinceOption } from "../since-option.ts";

/** Stored requests are held in memory until the oldest one is known. */
const LIMIT_MAX = 10_000;
/** How many stored requests `--since` alone lists. */
export const PAST_LIMIT_DEFAULT = 1_000;

export const LOGS = {
  name: "logs",
  summary: "follow the requests to your tunnels, or list past ones",
  usages: ["logs", "logs <tunnel>"],
  description: [
    "Prints each request when it has ended: its time, method, status, duration, size and path. Requests that stay open for long, such as WebSockets, are also printed while they are open.",
    "It follows new requests until you stop it. With --since or --limit it prints stored ones and ends, unless --follow is given too.",
    'A filter is a list of terms that must all match: method:POST, status:404, status:5xx, status:>=500, path:/api, path:/api/*/items, query:page=2 (only with UNDERPASS_ACCESS_TOKEN), duration:>1s, size:>10kB, kind:websocket, state:aborted, ip:203.0.113.7, error:agent_offline, or a text. A comma separates alternatives (status:404,5xx), a minus negates a term (-path:/health), and quotation marks enclose spaces (path:"/a b").',
  ].join("\n\n"),
  listArguments: listTunnelArguments,
  examples: [
    ["underpass logs", "new requests to all tunnels"],
    ["underpass logs shop --filter=status:5xx", "failures of one tunnel"],
    ["underpass logs shop --since 2h --limit 1000 --json", "stored requests, for a script"],
  ],
  options: {
    filter: {
      kind: "text",
      placeholder: "FILTER",
      help: "only requests that match, for example 'method:POST status:>=500'",
      parse: parseFilter,
    },
    since: {
      kind: "text",
      placeholder: "WHEN",
      help: "stored requests from this time: 90s, 2h, 7d, a time, or all",
      complete: ["1h", "1d", "7d", "all"],
      parse: parseSinceOption,
    },
    limit: {
      kind: "text",
      placeholder: "N",
      help: `the newest N stored requests, at most ${LIMIT_MAX} (default with --since: ${PAST_LIMIT_DEFAULT})`,
      parse: parseLimit,
    },
    follow: { kind: "flag", help: "with --since or --limit: then follow new requests" },
    ...API_OPTIONS,
    ...JSON_OPTION,
  },
} as const satisfies CommandSpec;

function parseFilter(text: string, option: string): CaptureExpression {
  try {
    return parseCaptureFilter(text);
  } catch (error) {
    if (!(error instanceof CaptureFilterError)) throw error;
    throw new UsageError(`${option}: ${explainError(error)}`);
  }
}

function parseLimit(text: string, option: string): number {
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= LIMIT_MAX) return limit;
  throw new UsageError(`${option} must be a number from 1 to ${LIMIT_MAX}, not ${text}`);
}
