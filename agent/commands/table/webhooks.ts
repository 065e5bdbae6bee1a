import { UsageError } from "../../options.ts";
import { parseForwardTarget, type ForwardTarget } from "../../webhooks/forward-target.ts";
import { API_OPTIONS } from "../../options/access-options.ts";
import { INSECURE_UPSTREAM_OPTION } from "../../origin/origin-options.ts";
import { JSON_OPTION, LOG_LEVEL_OPTION, type CommandSpec } from "../command.ts";
import { parseSinceOption } from "./since-option.ts";

export const WEBHOOKS = {
  name: "webhooks",
  summary: "forward a webhook receiver's deliveries to a local server",
  usages: ["webhooks <receiver> --forward URL"],
  description:
    "Takes the receiver's name or id. Deliveries that arrived while no agent ran come first.",
  examples: [
    ["underpass webhooks shop --forward 3000/hook", "from where the last run ended"],
    ["underpass webhooks shop --forward 3000/hook --since 2h", "also those of the last two hours"],
    [
      "underpass webhooks shop --forward unix:/run/app.sock:/hook",
      "to a server that listens on a Unix socket",
    ],
  ],
  options: {
    forward: {
      kind: "text",
      placeholder: "URL",
      help: "where to post each delivery: 3000/hook, a URL, or unix:/run/app.sock:/hook",
      parse: parseForward,
    },
    since: {
      kind: "text",
      placeholder: "WHEN",
      help: "start with older deliveries: 2h, 7d, a time, or all (default: where the last run ended)",
      complete: ["1h", "1d", "7d", "all"],
      parse: parseSinceOption,
    },
    ...INSECURE_UPSTREAM_OPTION,
    ...API_OPTIONS,
    ...JSON_OPTION,
    ...LOG_LEVEL_OPTION,
  },
} as const satisfies CommandSpec;

function parseForward(text: string, option: string): ForwardTarget {
  const target = parseForwardTarget(text);
  if (target) return target;
  throw new UsageError(
    `${option} must be a port up to 65535, host:port, http(s) URL or unix:path, not ${text}`,
  );
}
