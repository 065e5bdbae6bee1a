/** The output of `underpass http`: JSON for programs, and lines for logs. tunnel-screen.ts has the screen. */
import { nameKeys } from "../config/option-keys.ts";
import { describeMaintenance } from "../gates/tunnel-gates.ts";
import type { Target } from "../origin/target.ts";
import type { HttpTunnel } from "../tunnel/http-tunnel.ts";
import { printTunnelJson, printTunnelLines } from "./connection-events.ts";
import { formatStatus } from "./format/format-status.ts";
import {
  createEventPrinter,
  createLinePrinter,
  printRejectionJson,
  printRejectionLines,
  printStoppingJson,
  printStoppingLine,
  type Level,
  type Output,
} from "./output.ts";

/**
 * Prints a tunnel's events from now on.
 * @param name of the tunnel, when one process serves several. @returns what prints the end.
 */
export function printHttpJson(tunnel: HttpTunnel, target: Target, name?: string): Output {
  const print = createEventPrinter(name);
  tunnel.on("ready", ({ tunnelId, url, expiresAt }) => {
    const { inspectUrl } = tunnel;
    if (inspectUrl !== undefined) print({ event: "inspect", url: inspectUrl });
    print({ event: "ready", tunnelId, url, local: target.origin, expiresAt });
  });
  tunnel.on("request", ({ kind, method, path, status, durationMs, ...more }) => {
    const { problem, abortReason, requestId, bytesIn, bytesOut } = more;
    const request = { kind, method, path, status, durationMs, bytesIn, bytesOut };
    print({ event: "request", ...request, problem, abortReason, requestId });
  });
  tunnel.on("maintenance", (isOn) => print({ event: "maintenance", on: isOn }));
  tunnel.on("refused", (visits) => print({ event: "refused", visits }));
  tunnel.on("pool", (agents) => print({ event: "pool", agents }));
  printTunnelJson(tunnel, print, name === undefined ? "command_line" : "file");
  return { stopping: printStoppingJson, end: (rejection) => printRejectionJson(rejection) };
}

/** Like `printHttpJson`, as lines of text. */
export function printHttpLines(
  tunnel: HttpTunnel,
  target: Target,
  level: Level,
  name?: string,
): Output {
  const print = createLinePrinter(level, name);
  tunnel.on("ready", ({ url }) => {
    print("error", `Forwarding ${url} -> ${target.origin}`);
    if (tunnel.inspectUrl !== undefined) print("info", `Inspect at ${tunnel.inspectUrl}`);
    void tunnel.origin.findConnectProblem().then((problem) => {
      if (problem !== null) print("warn", name === undefined ? problem : nameKeys(problem));
    });
  });
  tunnel.on("request", ({ method, path, status, durationMs, ...more }) => {
    const { problem, abortReason, requestId } = more;
    const reason = problem ?? abortReason;
    const why = reason === undefined ? "" : ` (${reason})`;
    const id = level === "debug" && requestId !== undefined ? ` ${requestId}` : "";
    const lineLevel = problem === undefined ? "info" : "warn";
    print(lineLevel, `${formatStatus(status)} ${method} ${path} ${durationMs} ms${why}${id}`);
  });
  tunnel.on("maintenance", (isOn, tunnelId) => {
    if (isOn) print("warn", describeMaintenance(tunnelId));
    else print("info", "maintenance has ended: visitors are served again");
  });
  tunnel.on("refused", (visits) =>
    print("info", `${visits} ${visits === 1 ? "visit was" : "visits were"} refused by the service`),
  );
  tunnel.on("pool", (agents) => print("info", `${formatPool(agents)} this tunnel`));
  printTunnelLines(tunnel, print, name === undefined ? "command_line" : "file");
  return { stopping: printStoppingLine, end: (rejection) => printRejectionLines(rejection) };
}

function formatPool(agents: number): string {
  return agents === 1 ? "no other agent serves" : `${agents} agents serve`;
}
