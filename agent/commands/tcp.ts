/** `underpass tcp <port|host:port>`: a public TCP port for a local server, until it is stopped. */
import { parseCidr } from "../../shared/cidr.ts";
import { tcpJson, tcpLines, tcpScreen, type TcpOutput } from "../output/tcp.ts";
import { parseOptions, UsageError, type OptionSpec } from "../options.ts";
import { findServer, findToken } from "../settings.ts";
import { PROXY_PROTOCOLS, type ProxyProtocol } from "../tcp/proxy-protocol.ts";
import { parseTcpTarget } from "../tcp/tcp-target.ts";
import { TcpTunnel } from "../tcp/tcp-tunnel.ts";
import { parseLevel, parseSeconds } from "./option-values.ts";

export const tcpOptions = {
  server: { kind: "text", value: "URL", help: "the Underpass server (default: the last login)" },
  "token-file": { kind: "text", value: "FILE", help: "a file with the capability token's bytes" },
  subdomain: { kind: "text", value: "NAME", help: "the tunnel's name (default: a random one)" },
  project: { kind: "text", value: "SLUG", help: "the project the tunnel is in" },
  "remote-port": { kind: "text", value: "N", help: "the public port (default: a free one)" },
  allow: {
    kind: "list",
    value: "CIDR",
    help: "let visitors in from these addresses alone; may be repeated",
  },
  "proxy-protocol": {
    kind: "text",
    value: "v1|v2",
    help: "begin each local connection with the visitor's address",
  },
  ttl: { kind: "text", value: "SECONDS", help: "end the tunnel after this time" },
  json: { kind: "flag", help: "one JSON object a line" },
  "log-level": { kind: "text", value: "LEVEL", help: "error, warn, info (default) or debug" },
} as const satisfies Record<string, OptionSpec>;

/** @returns the exit code: 0 stopped by the user, 1 rejected for good. */
export async function tcp(args: string[]): Promise<number> {
  const { values, positionals } = parseOptions(args, tcpOptions);
  const [targetText, ...rest] = positionals;
  if (targetText === undefined) throw new UsageError("say which port: underpass tcp 5432");
  if (rest.length > 0) throw new UsageError(`${rest[0]} is one argument too many`);
  const target = parseTcpTarget(targetText);
  if (!target) throw new UsageError(`${targetText} is not a port or host:port`);
  const level = parseLevel(values["log-level"]);
  const options = {
    target,
    subdomain: values.subdomain,
    project: values.project,
    ttlSeconds: parseSeconds(values.ttl),
    remotePort: parsePort(values["remote-port"]),
    allow: values.allow.map(parseAllow),
    proxyProtocol: parseProxyProtocol(values["proxy-protocol"]),
  };
  const server = await findServer(values.server);
  const token = await findToken(server, values["token-file"]);
  const tunnel = new TcpTunnel({ ...options, server, token });
  const output = values.json
    ? tcpJson(tunnel, target.text)
    : process.stdout.isTTY
      ? tcpScreen(tunnel, target.text)
      : tcpLines(tunnel, target.text, level);
  return run(tunnel, output);
}

function run(tunnel: TcpTunnel, output: TcpOutput): Promise<number> {
  return new Promise((resolve) => {
    const stop = (): void => {
      process.off("SIGINT", stop);
      process.off("SIGTERM", stop);
      void tunnel.close().then(() => {
        output.end();
        resolve(0);
      });
    };
    process.on("SIGINT", stop);
    process.on("SIGTERM", stop);
    tunnel.on("rejected", (rejection) => {
      output.end(rejection);
      resolve(1);
    });
    tunnel.start();
  });
}

function parsePort(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535) throw new UsageError("--remote-port is 1 to 65535");
  return port;
}

function parseAllow(text: string): string {
  const cidr = parseCidr(text);
  if (!cidr) throw new UsageError(`--allow ${text} is not an address block such as 203.0.113.0/24`);
  return cidr.text;
}

function parseProxyProtocol(text: string | undefined): ProxyProtocol | undefined {
  if (text === undefined) return undefined;
  const version = PROXY_PROTOCOLS.find((known) => known === text);
  if (!version) throw new UsageError(`--proxy-protocol is ${PROXY_PROTOCOLS.join(" or ")}`);
  return version;
}
