/** `underpass tcp <port|host:port>`: a public TCP port for a local server, until it is stopped. */
import { tcpJson, tcpLines, tcpScreen } from "../output/tcp.ts";
import { getOnlyArgument, parseOptions, UsageError, type OptionSpec } from "../options.ts";
import { findServer, findToken } from "../settings.ts";
import { PROXY_PROTOCOLS, type ProxyProtocol } from "../tcp/proxy-protocol.ts";
import { parseTcpTarget } from "../tcp/tcp-target.ts";
import { TcpTunnel } from "../tcp/tcp-tunnel.ts";
import { TCP_TUNNEL_OPTIONS, TUNNEL_OPTIONS } from "../tunnel-options.ts";
import {
  API_OPTIONS,
  JSON_OPTION,
  LOG_LEVEL_OPTION,
  runUntilStopped,
  type Command,
} from "./command.ts";

const OPTIONS = {
  ...API_OPTIONS,
  ...TUNNEL_OPTIONS,
  ...TCP_TUNNEL_OPTIONS,
  "proxy-protocol": {
    kind: "text",
    value: PROXY_PROTOCOLS.join("|"),
    help: "begin each local connection with the visitor's address",
    parse: parseProxyProtocol,
  },
  ...JSON_OPTION,
  ...LOG_LEVEL_OPTION,
} as const satisfies Record<string, OptionSpec>;

export const tcpCommand: Command = {
  usage: [["tcp <port|host:port>", "give a local TCP server a public port"]],
  options: OPTIONS,
  run,
};

async function run(args: string[]): Promise<number> {
  const { values, positionals } = parseOptions(args, OPTIONS);
  const missing = "the local port is missing; for example: underpass tcp 5432";
  const targetText = getOnlyArgument(positionals, missing);
  const target = parseTcpTarget(targetText);
  if (!target) throw new UsageError(`${targetText} is not a port or host:port`);
  const server = await findServer(values.server);
  const tunnel = new TcpTunnel({
    target,
    server,
    token: await findToken(server, values["token-file"]),
    proxyProtocol: values["proxy-protocol"],
    settings: values,
  });
  const output = values.json
    ? tcpJson(tunnel, target.text)
    : process.stdout.isTTY
      ? tcpScreen(tunnel, target.text)
      : tcpLines(tunnel, target.text, values["log-level"] ?? "info");
  return runUntilStopped(tunnel, output);
}

function parseProxyProtocol(text: string, option: string): ProxyProtocol {
  const version = PROXY_PROTOCOLS.find((known) => known === text);
  if (version) return version;
  throw new UsageError(`${option} must be ${PROXY_PROTOCOLS.join(" or ")}, not ${text}`);
}
