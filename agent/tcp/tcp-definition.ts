/** A TCP tunnel as a command line or underpass.yml describes it. */
import { OFF } from "../gates/off.ts";
import { parseUnixSocket } from "../local-server/unix-socket.ts";
import { rejectEmpty, UsageError, type OptionValues } from "../options.ts";
import { describeInvalidAddress, isMistypedPort, parseTarget } from "../origin/target.ts";
import { PROGRAM } from "../program.ts";
import type { ServerAccess } from "../server-access.ts";
import { getSubdomain } from "../tunnel/tunnel-options.ts";
import type { TCP_TUNNEL_OPTIONS } from "./tcp-options.ts";
import { createTcpSocketTarget, parseTcpTarget } from "./tcp-target.ts";
import type { TcpTunnelOptions } from "./tcp-tunnel.ts";

/** The options of the tunnel, without the access to the server. */
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
  if (/^[a-z0-9.-]*[a-z][a-z0-9.-]*$/i.test(text) && !isMistypedPort(text))
    return `${text} has no port; use host:port, for example ${text}:5432`;
  return describeInvalidAddress(text, "port, host:port or unix:path");
}
