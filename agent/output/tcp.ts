/** What `underpass tcp` prints: JSON for programs, lines for logs, a picture for a person at a terminal. */
import type { FinishedConnection } from "../tcp/connect-stream.ts";
import type { TcpTunnel } from "../tcp/tcp-tunnel.ts";
import type { Rejected } from "../tunnel-connection.ts";
import { printJson } from "./json-lines.ts";
import { bold, dim, green, harmless, Picture, red, yellow } from "./picture.ts";
import { LEVELS, type Level } from "./plain-lines.ts";
import { rejectionText } from "./rejection.ts";

const CONNECTIONS_SHOWN = 12;
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

export interface TcpOutput {
  /** What the person reads last. */
  end(rejection?: Rejected): void;
}

/** @param local the local server, as it is shown. */
export function tcpJson(tunnel: TcpTunnel, local: string): TcpOutput {
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
  return {
    end(rejection) {
      if (!rejection) return;
      printJson({ event: "rejected", reason: rejection.reason, message: rejection.message });
    },
  };
}

export function tcpLines(tunnel: TcpTunnel, local: string, level: Level): TcpOutput {
  const print = (of: Level, text: string): void => {
    if (LEVELS.indexOf(of) <= LEVELS.indexOf(level)) process.stdout.write(`${text}\n`);
  };
  tunnel.on("ready", ({ url, name }) => {
    print("info", `Forwarding ${url} -> ${local}`);
    print("info", `Without the public port: underpass connect ${name} --listen 127.0.0.1:PORT`);
  });
  tunnel.on("connection", (connection) =>
    print(connection.problem === undefined ? "info" : "warn", connectionLine(connection)),
  );
  tunnel.on("disconnected", (reason) => print("warn", `disconnected: ${reason}; reconnecting`));
  tunnel.on("retrying", (reason, inMs) =>
    print("warn", `no connection: ${reason}; next attempt in ${(inMs / 1000).toFixed(1)} s`),
  );
  tunnel.on("stopped", (explanation) =>
    print("warn", `${explanation}; waiting until it is started again`),
  );
  tunnel.on("reconnected", ({ url }) => print("info", `reconnected: ${url}`));
  return {
    end(rejection) {
      if (rejection) process.stderr.write(`underpass: ${rejectionText(rejection)}\n`);
    },
  };
}

export function tcpScreen(tunnel: TcpTunnel, local: string): TcpOutput {
  let url = "…";
  let state = yellow("connecting");
  let count = 0;
  let shown: FinishedConnection[] = [];
  const picture = new Picture(() => [
    bold("underpass tcp") + dim("   Ctrl+C stops it"),
    "",
    `State        ${state}`,
    `Forwarding   ${bold(url)} -> ${local}`,
    `Connections  ${count}`,
    "",
    ...shown.map((connection) => {
      const line = connectionLine(connection);
      return connection.problem === undefined ? line : red(line);
    }),
  ]);
  const show = (text: string): void => {
    state = text;
    picture.draw();
  };
  tunnel.on("ready", (tunnel) => {
    ({ url } = tunnel);
    show(green("online"));
  });
  tunnel.on("reconnected", () => show(green("online")));
  tunnel.on("disconnected", (reason) => show(yellow(`reconnecting (${harmless(reason)})`)));
  tunnel.on("retrying", (reason) => show(yellow(`reconnecting (${harmless(reason)})`)));
  tunnel.on("stopped", (explanation) =>
    show(yellow(`stopped (${harmless(explanation)}); waiting until it is started again`)),
  );
  tunnel.on("connection", (connection) => {
    count += 1;
    shown = [connection, ...shown].slice(0, CONNECTIONS_SHOWN);
    picture.draw();
  });
  picture.draw();
  return {
    end: (rejection) => picture.end(rejection ? red(rejectionText(rejection)) : "Stopped."),
  };
}

/** `203.0.113.7 12.3 s, 1.2 KiB in, 3.4 MiB out` */
export function connectionLine(connection: FinishedConnection): string {
  const { address, via, durationMs, bytesIn, bytesOut, problem } = connection;
  const from = `${harmless(address)}${via === "connect" ? " (connect)" : ""}`;
  if (problem !== undefined) return `${from} not served: ${harmless(problem)}`;
  const seconds = (durationMs / 1000).toFixed(durationMs < 10_000 ? 2 : 0);
  return `${from} ${seconds} s, ${formatBytes(bytesIn)} in, ${formatBytes(bytesOut)} out`;
}

/** In units of 1,024. */
export function formatBytes(bytes: number): string {
  const exponent = bytes < 1 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length - 1);
  const value = bytes / 1024 ** exponent;
  return `${exponent === 0 ? value : value.toFixed(1)} ${UNITS[exponent]}`;
}
