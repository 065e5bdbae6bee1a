/** `underpass tcp <port|host:port>`: a public TCP port for a local server, until it is stopped. */
import { canShowScreen } from "../screen/terminal.ts";
import { tcpJson, tcpLines, tcpScreen } from "../output/tcp.ts";
import { getOnlyArgument, UsageError, type OptionValues } from "../options.ts";
import { findServer, findToken } from "../settings.ts";
import { parseTcpTarget } from "../tcp/tcp-target.ts";
import { TcpTunnel, type TcpTunnelOptions } from "../tcp/tcp-tunnel.ts";
import { getSubdomain } from "../tunnel-options.ts";
import type { Input } from "./command.ts";
import type { TCP, TCP_DEFINITION_OPTIONS } from "./table/tcp.ts";
import { runUntilStopped } from "./until-stopped.ts";

export async function run({ values, positionals }: Input<typeof TCP.options>): Promise<number> {
  const missing = "the local port is missing; for example: underpass tcp 5432";
  const targetText = getOnlyArgument(positionals, missing);
  const definition = parseTcpTunnel(targetText, values);
  const { target } = definition;
  const server = await findServer(values.server);
  const token = await findToken(server, values["token-file"]);
  const tunnel = new TcpTunnel({ ...definition, server, token });
  const output = values.json
    ? tcpJson(tunnel, target.text)
    : canShowScreen() && values["log-level"] === undefined
      ? tcpScreen(tunnel, target.text)
      : tcpLines(tunnel, target.text, values["log-level"] ?? "info");
  return runUntilStopped(tunnel, output);
}

/** A TCP tunnel as its options describe it, without the server and the token. */
export type TcpTunnelDefinition = Omit<TcpTunnelOptions, "server" | "token">;

/** @param targetText the local server, as it was typed. @throws UsageError */
export function parseTcpTunnel(
  targetText: string,
  values: OptionValues<typeof TCP_DEFINITION_OPTIONS>,
): TcpTunnelDefinition {
  const target = parseTcpTarget(targetText);
  if (!target) throw new UsageError(`${targetText} is not a port or host:port`);
  return {
    target,
    proxyProtocol: values["proxy-protocol"],
    settings: { ...values, subdomain: getSubdomain(values) },
  };
}
