/** The output of `underpass tcp`: JSON for programs, and lines for logs. tunnel-screen.ts has the screen. */
import { formatConnectCommand } from "../tcp/connect-command.ts";
import type { ConnectionReport } from "../tcp/connection-report.ts";
import type { TcpTunnel } from "../tcp/tcp-tunnel.ts";
import { printTunnelJson, printTunnelLines } from "./connection-events.ts";
import { formatBytes } from "./format/format-bytes.ts";
import { formatSeconds } from "./format/format-seconds.ts";
import {
  createEventPrinter,
  createLinePrinter,
  printRejectionJson,
  printRejectionLines,
  type Level,
  type Output,
} from "./output.ts";

/**
 * Prints a tunnel's events from now on.
 * @param local the local server, as it is printed. @param name of the tunnel, when one process serves several.
 * @returns what prints the end.
 */
export function printTcpJson(tunnel: TcpTunnel, local: string, name?: string): Output {
  const print = createEventPrinter(name);
  tunnel.on("ready", ({ tunnelId, url, connect, publicPort, expiresAt }) => {
    const { inspectUrl } = tunnel;
    if (inspectUrl !== undefined) print({ event: "inspect", url: inspectUrl });
    print({ event: "ready", tunnelId, url, connect, local, publicPort, expiresAt });
  });
  tunnel.on("connection", (connection) => print({ event: "connection", ...connection }));
  printTunnelJson(tunnel, print, name === undefined ? "command_line" : "file");
  return { end: (rejection) => printRejectionJson(rejection) };
}

/** Like `printTcpJson`, as lines of text. */
export function printTcpLines(
  tunnel: TcpTunnel,
  local: string,
  level: Level,
  name?: string,
): Output {
  const print = createLinePrinter(level, name);
  tunnel.on("ready", ({ url, name }) => {
    const isPrivate = url === null;
    print("error", `Forwarding ${isPrivate ? `${name} (private)` : url} -> ${local}`);
    if (tunnel.inspectUrl !== undefined) print("info", `Inspect at ${tunnel.inspectUrl}`);
    const command = `${formatConnectCommand(name)} --listen 127.0.0.1:PORT`;
    print("info", `To connect${isPrivate ? "" : " without the public port"}: ${command}`);
    void tunnel.findConnectProblem().then((problem) => {
      if (problem !== null) print("warn", problem);
    });
  });
  tunnel.on("connection", (connection) =>
    print(connection.problem === undefined ? "info" : "warn", formatConnection(connection)),
  );
  printTunnelLines(tunnel, print, name === undefined ? "command_line" : "file");
  return { end: (rejection) => printRejectionLines(rejection) };
}

/** `203.0.113.7 12.3 s, 1.2 kB in, 3.4 MB out` */
function formatConnection(connection: ConnectionReport): string {
  const { address, via, durationMs, bytesIn, bytesOut, problem } = connection;
  const from = `${address}${via === "connect" ? " (connect)" : ""}`;
  if (problem !== undefined) return `${from} not served: ${problem}`;
  return `${from} ${formatSeconds(durationMs)}, ${formatBytes(bytesIn)} in, ${formatBytes(bytesOut)} out`;
}
