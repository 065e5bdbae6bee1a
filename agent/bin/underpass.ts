#!/usr/bin/env node
/** The command `underpass`. */
import { setFlagsFromString } from "node:v8";
import { connect, connectOptions } from "../commands/connect.ts";
import { http, httpOptions } from "../commands/http.ts";
import { login, loginOptions } from "../commands/login.ts";
import { tcp, tcpOptions } from "../commands/tcp.ts";
import { vpn, vpnOptions } from "../commands/vpn.ts";
import { webhooks, webhooksOptions } from "../commands/webhooks.ts";
import { helpOf, UsageError } from "../options.ts";
import { SettingsError } from "../settings.ts";
import { SERVICE_VERSION } from "../../protocol/version.ts";

const HELP = `underpass gives a port on this machine a public URL.

  underpass http <port|host:port|URL>   share a local web server
  underpass tcp <port|host:port>        give a local TCP server a public port
  underpass connect <tunnel>            a local port that leads to a TCP tunnel
  underpass webhooks <receiver>         bring what vendors delivered to a local server
  underpass vpn <network>               serve a private WireGuard network from this machine
  underpass vpn <network> add <device>  let a device in: its configuration and QR code
  underpass vpn <network> devices       list its devices; remove <device> takes one out
  underpass login                       get a token for this machine
  underpass version                     print the version

Options of http (each also as UNDERPASS_<NAME>):
${helpOf(httpOptions)}

Options of tcp:
${helpOf(tcpOptions)}

Options of connect:
${helpOf(connectOptions)}

Options of webhooks:
${helpOf(webhooksOptions)}

Options of vpn:
${helpOf(vpnOptions)}

Options of login:
${helpOf(loginOptions)}
`;

async function main([command, ...args]: string[]): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) command = "help";
  switch (command) {
    case "http":
      return http(args);
    case "tcp":
      return tcp(args);
    case "connect":
      return connect(args);
    case "webhooks":
      return webhooks(args);
    case "vpn":
      return vpn(args);
    case "login":
      return login(args);
    case "version":
    case "--version":
    case "-v":
      process.stdout.write(`underpass ${SERVICE_VERSION}\n`);
      return 0;
    case "help":
    case "--help":
    case "-h":
      process.stdout.write(HELP);
      return 0;
    case undefined:
      process.stderr.write(HELP);
      return 2;
    default:
      throw new UsageError(`there is no command ${command}`);
  }
}

// V8 would let its space for young objects grow to 64 MiB. Bytes that pass are outside of it: 1,000 open
// connections took 71 MiB with the default and 38 MiB with a small space, at the same speed.
setFlagsFromString("--semi-space-growth-factor=1");

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (error instanceof UsageError) {
    process.stderr.write(`underpass: ${error.message}\nSee: underpass help\n`);
    process.exitCode = 2;
  } else {
    const expected = error instanceof SettingsError;
    const text = expected ? error.message : describe(error);
    process.stderr.write(`underpass: ${text}\n`);
    process.exitCode = 1;
  }
}
// A command that is done is done: kept-alive connections must not hold the process.
process.exit();

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : "";
  return `${error.message}${cause}`;
}
