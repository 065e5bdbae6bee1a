/** What `underpass http` prints: JSON for programs, and lines for logs; http-screen.ts has the screen. */
import type { RequestReport } from "../library/types.ts";
import type { Target } from "../target.ts";
import type { HttpTunnel } from "../http-tunnel.ts";
import { printTunnelJson, printTunnelLines } from "./connection-events.ts";
import {
  createEventPrinter,
  createLinePrinter,
  endJson,
  endLines,
  type Level,
  type Output,
} from "./output.ts";
import { dim, green, red, stripControl, yellow } from "./terminal-view.ts";

export function httpJson(tunnel: HttpTunnel, target: Target, name?: string): Output {
  const print = createEventPrinter(name);
  tunnel.on("ready", ({ tunnelId, url }) => {
    const { inspectUrl } = tunnel;
    if (inspectUrl !== undefined) print({ event: "inspect", url: inspectUrl });
    print({ event: "ready", tunnelId, url, local: target.origin });
  });
  tunnel.on("request", ({ method, path, status, durationMs, problem }) =>
    print({ event: "request", method, path, status, durationMs, problem }),
  );
  printTunnelJson(tunnel, print);
  tunnel.on("notice", (message) => print({ event: "notice", message }));
  return { end: (rejection) => endJson(rejection) };
}

export function httpLines(tunnel: HttpTunnel, target: Target, level: Level, name?: string): Output {
  const print = createLinePrinter(level, name);
  tunnel.on("ready", ({ url }) => {
    print("info", `Forwarding ${url} -> ${target.origin}`);
    if (tunnel.inspectUrl !== undefined) print("info", `Inspect at ${tunnel.inspectUrl}`);
    void tunnel.origin.isListening().then((isListening) => {
      if (isListening) return;
      print("warn", notListening(target));
    });
  });
  tunnel.on("request", ({ method, path, status, durationMs, problem }) => {
    const why = problem === undefined ? "" : ` (${stripControl(problem)})`;
    print("info", `${status} ${method} ${stripControl(path)} ${durationMs} ms${why}`);
  });
  printTunnelLines(tunnel, print);
  tunnel.on("notice", (message) => print("warn", message));
  return { end: (rejection) => endLines(rejection) };
}

/** The warning while the local server accepts no connections. */
export function notListening({ origin }: Target): string {
  return `nothing is listening on ${origin} yet; start the local server`;
}

export function formatRequest({
  method,
  path,
  status,
  durationMs,
  problem,
}: RequestReport): string {
  const color = status >= 500 ? red : status >= 400 ? yellow : green;
  const time = `${durationMs} ms`.padStart(10);
  const why = problem === undefined ? "" : dim(`  ${stripControl(problem)}`);
  return `${color(String(status))} ${method.padEnd(7)}${time}  ${stripControl(path)}${why}`;
}
