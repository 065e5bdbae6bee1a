/** `underpass webhooks <receiver> --forward URL`: brings what vendors delivered to a local server. */
import { jsonOutput, linesOutput, screenOutput } from "../output/deliveries.ts";
import { parseOptions, UsageError, type OptionSpec } from "../options.ts";
import { findServer, findToken } from "../settings.ts";
import { Rejected } from "../tunnel.ts";
import { Forwarder } from "../webhooks/forwarder.ts";
import { parseForwardTarget } from "../webhooks/forward-target.ts";
import { LocalServer } from "../webhooks/local-server.ts";
import { ReceiverApi } from "../webhooks/receiver-api.ts";
import { parseSince } from "../webhooks/since.ts";

export const webhooksOptions = {
  forward: { kind: "text", value: "URL", help: "where to post each delivery: 3000/hook, or a URL" },
  since: {
    kind: "text",
    value: "WHEN",
    help: "start with older ones: 2h, 7d, a moment, or all (default: where the last run ended)",
  },
  server: { kind: "text", value: "URL", help: "the Underpass server (default: the last login)" },
  "token-file": { kind: "text", value: "FILE", help: "a file with the capability token's bytes" },
  "insecure-upstream": { kind: "flag", help: "accept any certificate of a local https server" },
  json: { kind: "flag", help: "one JSON object a line" },
} as const satisfies Record<string, OptionSpec>;

/** @returns the exit code: 0 stopped by the user, 1 refused for good. */
export async function webhooks(args: string[]): Promise<number> {
  const { values, positionals } = parseOptions(args, webhooksOptions);
  const [receiver, ...rest] = positionals;
  if (receiver === undefined) {
    throw new UsageError("say which receiver: underpass webhooks shop --forward 3000/hook");
  }
  if (rest.length > 0) throw new UsageError(`one receiver at a time; what is ${rest[0]}?`);
  if (values.forward === undefined) throw new UsageError("say where to: --forward 3000/hook");
  const target = parseForwardTarget(values.forward);
  if (!target) throw new UsageError(`${values.forward} is no port, host:port or http(s) URL`);
  const since = values.since === undefined ? undefined : parseSince(values.since, Date.now());
  if (since === null) {
    throw new UsageError(
      "--since takes 90s, 30m, 2h, 7d, a moment such as 2026-01-31T12:00:00Z, or all",
    );
  }
  const server = await findServer(values.server);
  const token = await findToken(server, values["token-file"]);
  const local = new LocalServer(target, { insecureUpstream: values["insecure-upstream"] });
  const forwarder = new Forwarder(new ReceiverApi(server, token), local, { receiver, since });
  const newOutput = values.json ? jsonOutput : process.stdout.isTTY ? screenOutput : linesOutput;
  const output = newOutput(forwarder, target.url);

  const stop = (): void => forwarder.stop();
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  try {
    await forwarder.run();
    output.end();
    return 0;
  } catch (error) {
    if (!(error instanceof Rejected)) throw error;
    output.end(error);
    return 1;
  } finally {
    process.off("SIGINT", stop);
    process.off("SIGTERM", stop);
    await local.close();
  }
}
