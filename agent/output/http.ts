/** What `underpass http` prints: JSON for programs, lines for logs, a live view for a person at a terminal. */
import type { RequestReport } from "../library/types.ts";
import type { Target } from "../target.ts";
import type { HttpTunnel } from "../http-tunnel.ts";
import { printTunnelJson, printTunnelLines, showTunnelState } from "./connection-events.ts";
import {
  createEventPrinter,
  createLinePrinter,
  endJson,
  endLines,
  formatRejection,
  type Level,
  type Output,
} from "./output.ts";
import { bold, dim, green, red, stripControl, TerminalView, yellow } from "./terminal-view.ts";

const REQUESTS_SHOWN = 12;
/** How often the live view checks whether the local server listens. */
const ORIGIN_CHECK_MS = 2_000;

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

export function httpScreen(tunnel: HttpTunnel, target: Target): Output {
  let state = yellow("connecting");
  let originProblem = "";
  let notice = "";
  let count = 0;
  let recent: RequestReport[] = [];
  const view = new TerminalView(() => [
    bold("underpass") + dim("   press Ctrl+C to stop"),
    "",
    `State       ${state}`,
    `Forwarding  ${bold(tunnel.welcome?.url ?? "…")} -> ${target.origin}`,
    ...(originProblem === "" ? [] : [`Warning     ${yellow(originProblem)}`]),
    `Requests    ${count}`,
    ...(notice === "" ? [] : [`Note        ${yellow(notice)}`]),
    "",
    ...recent.map((request) => formatRequest(request)),
  ]);
  showTunnelState(tunnel, (text) => {
    state = text;
    view.draw();
  });
  tunnel.on("notice", (message) => {
    notice = message;
    view.draw();
  });
  tunnel.on("request", (request) => {
    count += 1;
    recent = [request, ...recent].slice(0, REQUESTS_SHOWN);
    view.draw();
  });
  const checkOrigin = async (): Promise<void> => {
    const isListening = await tunnel.origin.isListening();
    const problem = isListening ? "" : notListening(target);
    if (problem === originProblem) return;
    originProblem = problem;
    view.draw();
  };
  const checks = setInterval(() => void checkOrigin(), ORIGIN_CHECK_MS);
  void checkOrigin();
  view.draw();
  return {
    end(rejection) {
      clearInterval(checks);
      view.end(rejection ? red(formatRejection(rejection)) : "Stopped.");
    },
  };
}

function notListening({ origin }: Target): string {
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
