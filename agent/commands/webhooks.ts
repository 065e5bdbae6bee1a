/** `underpass webhooks <receiver> --forward URL`: forwards a receiver's deliveries to a local server. */
import { webhooksJson, webhooksLines, webhooksScreen } from "../output/webhooks.ts";
import { getOnlyArgument, parseOptions, UsageError, type OptionSpec } from "../options.ts";
import { findServer, findToken } from "../settings.ts";
import { RejectionError } from "../tunnel-connection.ts";
import { Forwarder } from "../webhooks/forwarder.ts";
import { parseForwardTarget, type ForwardTarget } from "../webhooks/forward-target.ts";
import { DeliveryClient } from "../webhooks/local-server.ts";
import { ReceiverApi } from "../webhooks/receiver-api.ts";
import { parseSince } from "../webhooks/since.ts";
import { API_OPTIONS, INSECURE_UPSTREAM_OPTION, JSON_OPTION, type Command } from "./command.ts";

const OPTIONS = {
  forward: {
    kind: "text",
    value: "URL",
    help: "where to post each delivery: 3000/hook, or a URL",
    parse: parseForward,
  },
  since: {
    kind: "text",
    value: "WHEN",
    help: "start with older deliveries: 2h, 7d, a time, or all (default: where the last run ended)",
    parse: parseStart,
  },
  ...API_OPTIONS,
  ...INSECURE_UPSTREAM_OPTION,
  ...JSON_OPTION,
} as const satisfies Record<string, OptionSpec>;

export const webhooksCommand: Command = {
  usage: [["webhooks <receiver>", "forward a webhook receiver's deliveries to a local server"]],
  options: OPTIONS,
  run,
};

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parseOptions(args, OPTIONS);
  const example = "for example: underpass webhooks shop --forward 3000/hook";
  const receiver = getOnlyArgument(positionals, `the receiver is missing; ${example}`);
  const { forward: target, since } = values;
  if (target === undefined) throw new UsageError(`--forward is missing; ${example}`);
  const server = await findServer(values.server);
  const token = await findToken(server, values["token-file"]);
  const local = new DeliveryClient(target, { insecureUpstream: values["insecure-upstream"] });
  const forwarder = new Forwarder(new ReceiverApi(server, token), local, { receiver, since });
  const newOutput = values.json
    ? webhooksJson
    : process.stdout.isTTY
      ? webhooksScreen
      : webhooksLines;
  const output = newOutput(forwarder, target.url);

  const stop = (): void => forwarder.stop();
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  try {
    await forwarder.run();
    output.end();
    return 0;
  } catch (error) {
    if (!(error instanceof RejectionError)) throw error;
    output.end(error);
    return 1;
  } finally {
    process.off("SIGINT", stop);
    process.off("SIGTERM", stop);
    await local.close();
  }
}

function parseForward(text: string, option: string): ForwardTarget {
  const target = parseForwardTarget(text);
  if (target) return target;
  throw new UsageError(`${option} must be a port, host:port or http(s) URL, not ${text}`);
}

function parseStart(text: string, option: string): string {
  const since = parseSince(text, Date.now());
  if (since !== null) return since;
  throw new UsageError(
    `${option} must be 90s, 30m, 2h, 7d, a time such as 2026-01-31T12:00:00Z, or all, not ${text}`,
  );
}
