/** `underpass connect <tunnel> --listen ADDR`: a local port that leads to a TCP tunnel, without its public port. */
import {
  DEFAULT_LISTEN_ADDRESS,
  parseListenAddress,
  type ListenAddress,
} from "../connect/listen-address.ts";
import { LocalPort } from "../connect/local-port.ts";
import { connectJson, connectLines } from "../output/connect.ts";
import { getOnlyArgument, parseOptions, UsageError, type OptionSpec } from "../options.ts";
import { findServer, findToken } from "../settings.ts";
import {
  API_OPTIONS,
  JSON_OPTION,
  LOG_LEVEL_OPTION,
  runUntilStopped,
  type Command,
} from "./command.ts";

const OPTIONS = {
  listen: {
    kind: "text",
    value: "ADDR",
    help: "where to listen: 5433, 127.0.0.1:5433, [::1]:5433 (default: the tunnel's own port)",
    parse: parseListen,
  },
  ...API_OPTIONS,
  ...JSON_OPTION,
  ...LOG_LEVEL_OPTION,
} as const satisfies Record<string, OptionSpec>;

export const connectCommand: Command = {
  usage: [["connect <tunnel>", "open a local port that leads to a TCP tunnel"]],
  options: OPTIONS,
  run,
};

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parseOptions(args, OPTIONS);
  const tunnel = getOnlyArgument(
    positionals,
    "the tunnel is missing; for example: underpass connect my-database --listen 5433",
  );
  const server = await findServer(values.server);
  const token = await findToken(server, values["token-file"]);
  const local = new LocalPort({
    server,
    token,
    tunnel,
    listen: values.listen ?? DEFAULT_LISTEN_ADDRESS,
  });
  const output = values.json
    ? connectJson(local, tunnel)
    : connectLines(local, tunnel, values["log-level"] ?? "info");
  return runUntilStopped(local, output);
}

function parseListen(text: string, option: string): ListenAddress {
  const address = parseListenAddress(text);
  if (address) return address;
  throw new UsageError(`${option} must be a port or address:port, not ${text}`);
}
