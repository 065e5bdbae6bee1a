/** `underpass tcp <port|host:port>`: a public TCP port for a local server, until it is stopped. */
import { tcpJson, tcpLines, tcpScreen } from "../output/tcp.ts";
import {
  getOnlyArgument,
  parseOptions,
  UsageError,
  type OptionSpec,
  type OptionValues,
} from "../options.ts";
import { findServer, findToken } from "../settings.ts";
import { PROXY_PROTOCOLS, type ProxyProtocol } from "../tcp/proxy-protocol.ts";
import { parseTcpTarget } from "../tcp/tcp-target.ts";
import { TcpTunnel, type TcpTunnelOptions } from "../tcp/tcp-tunnel.ts";
import { TCP_TUNNEL_OPTIONS, TUNNEL_OPTIONS } from "../tunnel-options.ts";
import {
  API_OPTIONS,
  JSON_OPTION,
  LOG_LEVEL_OPTION,
  runUntilStopped,
  type Command,
} from "./command.ts";

/** Those that describe the tunnel. */
const TCP_OPTIONS = {
  ...TUNNEL_OPTIONS,
  ...TCP_TUNNEL_OPTIONS,
  "proxy-protocol": {
    kind: "text",
    value: PROXY_PROTOCOLS.join("|"),
    help: "begin each local connection with the visitor's address",
    parse: parseProxyProtocol,
  },
} as const satisfies Record<string, OptionSpec>;

const OPTIONS = {
  ...API_OPTIONS,
  ...TCP_OPTIONS,
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
  const definition = parseTcpTunnel(targetText, values);
  const { target } = definition;
  const server = await findServer(values.server);
  const token = await findToken(server, values["token-file"]);
  const tunnel = new TcpTunnel({ ...definition, server, token });
  const output = values.json
    ? tcpJson(tunnel, target.text)
    : process.stdout.isTTY
      ? tcpScreen(tunnel, target.text)
      : tcpLines(tunnel, target.text, values["log-level"] ?? "info");
  return runUntilStopped(tunnel, output);
}

/** A TCP tunnel as its options describe it, without the server and the token. */
type TcpTunnelDefinition = Omit<TcpTunnelOptions, "server" | "token">;

/** @param targetText the local server, as it was typed. @throws UsageError */
function parseTcpTunnel(
  targetText: string,
  values: OptionValues<typeof TCP_OPTIONS>,
): TcpTunnelDefinition {
  const target = parseTcpTarget(targetText);
  if (!target) throw new UsageError(`${targetText} is not a port or host:port`);
  return { target, proxyProtocol: values["proxy-protocol"], settings: values };
}

function parseProxyProtocol(text: string, option: string): ProxyProtocol {
  const version = PROXY_PROTOCOLS.find((known) => known === text);
  if (version) return version;
  throw new UsageError(`${option} must be ${PROXY_PROTOCOLS.join(" or ")}, not ${text}`);
}
