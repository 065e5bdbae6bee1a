/** `underpass tcp <port|host:port>`: a public TCP port for a local server, until it is stopped. */
import { OFF } from "../gates/off.ts";
import { canShowScreen } from "../screen/terminal.ts";
import { InspectedTunnels } from "../inspect/inspected-tunnels.ts";
import { startInspectServer } from "../inspect/start-inspect-server.ts";
import { TunnelScreen } from "../output/tunnel-screen.ts";
import type { Output } from "../output/output.ts";
import { printTcpJson, printTcpLines } from "../output/tcp.ts";
import { ServiceApi } from "../service-api.ts";
import { getOnlyArgument, rejectEmpty, UsageError, type OptionValues } from "../options.ts";
import { findServerAccess, type ServerAccess } from "../server-access.ts";
import { parseUnixSocket } from "../local-server/unix-socket.ts";
import { describeInvalidAddress, parseTarget } from "../origin/target.ts";
import { createTcpSocketTarget, parseTcpTarget } from "../tcp/tcp-target.ts";
import { TcpTunnel, type TcpTunnelOptions } from "../tcp/tcp-tunnel.ts";
import { getSubdomain } from "../tunnel/tunnel-options.ts";
import type { Input } from "./command.ts";
import type { TCP, TCP_TUNNEL_OPTIONS } from "./table/tcp.ts";
import { runUntilStopped } from "./run-until-stopped.ts";
import { PROGRAM } from "../program.ts";

export async function run({ values, positionals }: Input<typeof TCP.options>): Promise<number> {
  const targetText = getOnlyArgument(positionals, "the local port", `${PROGRAM} tcp 5432`);
  const definition = parseTcpTunnel(targetText, values);
  const { target } = definition;
  const access = await findServerAccess(values);
  const tunnel = new TcpTunnel({ ...definition, ...access });
  const createOutput = (): Output => {
    if (values.json) return printTcpJson(tunnel, target.text);
    if (values["log-level"] !== undefined || !canShowScreen())
      return printTcpLines(tunnel, target.text, values["log-level"] ?? "info");
    const screen = new TunnelScreen(access.server, new ServiceApi(access, access.token));
    screen.addTcp(tunnel, target);
    return screen;
  };
  const output = createOutput();
  const inspected = new InspectedTunnels();
  inspected.addTcp(tunnel, target.text);
  const stopInspector = await startInspectServer(tunnel, inspected, values.inspect);
  try {
    return await runUntilStopped(tunnel, output);
  } finally {
    stopInspector();
  }
}

/** A TCP tunnel as its options describe it, without the access to the server. */
export type TcpTunnelDefinition = Omit<TcpTunnelOptions, keyof ServerAccess>;

/**
 * @param targetText the local server, as it was typed.
 * @param baseDirectory where the path of a Unix socket starts. Default: the current directory.
 * @throws UsageError
 */
export function parseTcpTunnel(
  targetText: string,
  values: OptionValues<typeof TCP_TUNNEL_OPTIONS>,
  baseDirectory?: string,
): TcpTunnelDefinition {
  rejectEmpty(targetText, "the local port");
  const socketPath = parseUnixSocket(targetText, baseDirectory);
  const target =
    socketPath === null ? parseTcpTarget(targetText) : createTcpSocketTarget(socketPath);
  if (!target) throw new UsageError(describeInvalidTarget(targetText));
  const { private: isPrivate } = values;
  if (isPrivate && values["remote-port"] !== undefined)
    throw new UsageError("a tunnel with --private has no public port; leave out --remote-port");
  if (values.allow.includes(OFF) && values.allow.length > 1)
    throw new UsageError("off of --allow removes the whole list; leave out the other addresses");
  return {
    target,
    isPrivate,
    proxyProtocol: values["proxy-protocol"],
    settings: { ...values, subdomain: getSubdomain(values) },
  };
}

function describeInvalidTarget(text: string): string {
  const [, scheme] = /^(https?):\/\//i.exec(text) ?? [];
  if (scheme !== undefined && parseTarget(text))
    return `${text} is an HTTP server; use \`${PROGRAM} http ${text}\`, or its host:port for a public TCP port`;
  // A name alone: other commands have a default port for it.
  if (/^[a-z0-9.-]*[a-z][a-z0-9.-]*$/i.test(text))
    return `${text} has no port; use host:port, for example ${text}:5432`;
  return describeInvalidAddress(text, "port, host:port or unix:path");
}
