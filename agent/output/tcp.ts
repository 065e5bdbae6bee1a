/** What `underpass tcp` prints: JSON for programs, lines for logs, a live view for a person at a terminal. */
import type { ConnectionReport } from "../tcp/connect-stream.ts";
import type { TcpTunnel } from "../tcp/tcp-tunnel.ts";
import { printTunnelJson, printTunnelLines, showTunnelState } from "./connection-events.ts";
import { formatBytes } from "./format-bytes.ts";
import {
  createEventPrinter,
  createLinePrinter,
  endJson,
  endLines,
  formatRejection,
  type Level,
  type Output,
} from "./output.ts";
import { bold, dim, stripControl, TerminalView, red, yellow } from "./terminal-view.ts";

const CONNECTIONS_SHOWN = 12;

/** @param local the local server, as it is printed. */
export function tcpJson(tunnel: TcpTunnel, local: string, name?: string): Output {
  const print = createEventPrinter(name);
  tunnel.on("ready", ({ tunnelId, url, publicPort }) =>
    print({ event: "ready", tunnelId, url, local, publicPort }),
  );
  tunnel.on("connection", (connection) => print({ event: "connection", ...connection }));
  printTunnelJson(tunnel, print);
  return { end: (rejection) => endJson(rejection) };
}

export function tcpLines(tunnel: TcpTunnel, local: string, level: Level, name?: string): Output {
  const print = createLinePrinter(level, name);
  tunnel.on("ready", ({ url, name }) => {
    print("info", `Forwarding ${url} -> ${local}`);
    print(
      "info",
      `To connect without the public port: underpass connect ${name} --listen 127.0.0.1:PORT`,
    );
  });
  tunnel.on("connection", (connection) =>
    print(connection.problem === undefined ? "info" : "warn", formatConnection(connection)),
  );
  printTunnelLines(tunnel, print);
  return { end: (rejection) => endLines(rejection) };
}

export function tcpScreen(tunnel: TcpTunnel, local: string): Output {
  let url = "…";
  let state = yellow("connecting");
  let count = 0;
  let recent: ConnectionReport[] = [];
  const view = new TerminalView(() => [
    bold("underpass tcp") + dim("   q quits"),
    "",
    `State        ${state}`,
    `Forwarding   ${bold(url)} -> ${local}`,
    `Connections  ${count}`,
    "",
    ...recent.map((connection) => {
      const line = formatConnection(connection);
      return connection.problem === undefined ? line : red(line);
    }),
  ]);
  tunnel.on("ready", (served) => {
    url = served.url;
  });
  showTunnelState(tunnel, (text) => {
    state = text;
    view.draw();
  });
  tunnel.on("connection", (connection) => {
    count += 1;
    recent = [connection, ...recent].slice(0, CONNECTIONS_SHOWN);
    view.draw();
  });
  view.draw();
  return {
    end: (rejection) => view.end(rejection ? red(formatRejection(rejection)) : "Stopped."),
  };
}

/** `203.0.113.7 12.3 s, 1.2 kB in, 3.4 MB out` */
export function formatConnection(connection: ConnectionReport): string {
  const { address, via, durationMs, bytesIn, bytesOut, problem } = connection;
  const from = `${stripControl(address)}${via === "connect" ? " (connect)" : ""}`;
  if (problem !== undefined) return `${from} not served: ${stripControl(problem)}`;
  const seconds = (durationMs / 1000).toFixed(durationMs < 10_000 ? 2 : 0);
  return `${from} ${seconds} s, ${formatBytes(bytesIn)} in, ${formatBytes(bytesOut)} out`;
}
