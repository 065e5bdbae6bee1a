/** What `underpass tcp` prints: JSON for programs, lines for logs, a live view for a person at a terminal. */
import type { ConnectionReport } from "../tcp/connect-stream.ts";
import type { TcpTunnel } from "../tcp/tcp-tunnel.ts";
import { bold, dim, green, stripControl, TerminalView, red, yellow } from "./terminal-view.ts";
import {
  createLinePrinter,
  endJson,
  endLines,
  formatRejection,
  printJson,
  type Level,
  type Output,
} from "./output.ts";

const CONNECTIONS_SHOWN = 12;
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** @param local the local server, as it is printed. */
export function tcpJson(tunnel: TcpTunnel, local: string): Output {
  tunnel.on("ready", ({ tunnelId, url, publicPort }) =>
    printJson({ event: "ready", tunnelId, url, local, publicPort }),
  );
  tunnel.on("connection", (connection) => printJson({ event: "connection", ...connection }));
  tunnel.on("disconnected", (reason) => printJson({ event: "disconnected", reason }));
  tunnel.on("retrying", (reason, inMs) =>
    printJson({ event: "retrying", reason, inMs: Math.round(inMs) }),
  );
  tunnel.on("stopped", (explanation) =>
    printJson({ event: "disconnected", reason: `tunnel_stopped: ${explanation}` }),
  );
  tunnel.on("reconnected", () => printJson({ event: "reconnected" }));
  return { end: (rejection) => endJson(rejection) };
}

export function tcpLines(tunnel: TcpTunnel, local: string, level: Level): Output {
  const print = createLinePrinter(level);
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
  tunnel.on("disconnected", (reason) => print("warn", `disconnected: ${reason}; reconnecting`));
  tunnel.on("retrying", (reason, inMs) =>
    print("warn", `no connection: ${reason}; next attempt in ${(inMs / 1000).toFixed(1)} s`),
  );
  tunnel.on("stopped", (explanation) =>
    print("warn", `${explanation}; waiting until it is started again`),
  );
  tunnel.on("reconnected", ({ url }) => print("info", `reconnected: ${url}`));
  return { end: (rejection) => endLines(rejection) };
}

export function tcpScreen(tunnel: TcpTunnel, local: string): Output {
  let url = "…";
  let state = yellow("connecting");
  let count = 0;
  let recent: ConnectionReport[] = [];
  const view = new TerminalView(() => [
    bold("underpass tcp") + dim("   press Ctrl+C to stop"),
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
  const show = (text: string): void => {
    state = text;
    view.draw();
  };
  tunnel.on("ready", (tunnel) => {
    ({ url } = tunnel);
    show(green("online"));
  });
  tunnel.on("reconnected", () => show(green("online")));
  tunnel.on("disconnected", (reason) => show(yellow(`reconnecting (${stripControl(reason)})`)));
  tunnel.on("retrying", (reason) => show(yellow(`reconnecting (${stripControl(reason)})`)));
  tunnel.on("stopped", (explanation) =>
    show(yellow(`stopped (${stripControl(explanation)}); waiting until it is started again`)),
  );
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

/** `203.0.113.7 12.3 s, 1.2 KiB in, 3.4 MiB out` */
export function formatConnection(connection: ConnectionReport): string {
  const { address, via, durationMs, bytesIn, bytesOut, problem } = connection;
  const from = `${stripControl(address)}${via === "connect" ? " (connect)" : ""}`;
  if (problem !== undefined) return `${from} not served: ${stripControl(problem)}`;
  const seconds = (durationMs / 1000).toFixed(durationMs < 10_000 ? 2 : 0);
  return `${from} ${seconds} s, ${formatBytes(bytesIn)} in, ${formatBytes(bytesOut)} out`;
}

/** In units of 1,024. */
export function formatBytes(bytes: number): string {
  const exponent = bytes < 1 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length - 1);
  const value = bytes / 1024 ** exponent;
  return `${exponent === 0 ? value : value.toFixed(1)} ${UNITS[exponent]}`;
}
