/** How quickly the server answers, and how much the connection carries. */
import { ok, problem, skipped, warning, type Outcome } from "./check.ts";
import type { DiagnosticConnection } from "./diagnostic-connection.ts";
import type { Fetch } from "./http-check.ts";
import type { Route } from "./route.ts";
import { PROGRAM } from "../program.ts";

const ROUND_TRIPS = 7;
/** Beyond this, each request of a visitor is noticeably slower. */
const LATENCY_WARNING_MS = 500;
/** All round trips together. */
const LATENCY_BUDGET_MS = 1_500;
const THROUGHPUT_WARNING_BPS = 1_000_000;

export async function checkLatency(
  { server }: Route,
  fetch: Fetch,
  signal: AbortSignal,
): Promise<Outcome> {
  const url = new URL("/health", server);
  const tried = `${ROUND_TRIPS} small requests to ${server.host}, one after the other`;
  const times: number[] = [];
  const beganAtMs = performance.now();
  try {
    while (times.length < ROUND_TRIPS && performance.now() - beganAtMs < LATENCY_BUDGET_MS) {
      const startedAtMs = performance.now();
      const response = await fetch(url, { signal });
      await response.arrayBuffer();
      times.push(performance.now() - startedAtMs);
    }
  } catch {
    return problem(
      tried,
      `after ${times.length} answers the next one did not arrive`,
      `The connection is not reliable: try another network, and run ${PROGRAM} doctor again.`,
    );
  }
  times.sort((a, b) => a - b);
  const median = times[Math.floor(times.length / 2)] ?? 0;
  const result = `median ${formatMs(median)}, worst ${formatMs(times.at(-1) ?? 0)}`;
  if (median <= LATENCY_WARNING_MS) return ok(tried, result);
  return warning(
    tried,
    result,
    "Each request of a visitor takes at least this much longer. A VPN or a distant proxy may be the reason.",
  );
}

/** @param connection is closed afterwards. */
export async function checkThroughput(connection: DiagnosticConnection | null): Promise<Outcome> {
  if (connection === null) {
    return skipped("it needs a valid token, and a server that has a diagnostic connection");
  }
  const tried = "sending and receiving at most 2 MiB, for at most a second each";
  const down = await connection.measureDownload();
  const up = await connection.measureUpload();
  connection.close();
  const result = `${formatRate(down)} from the server, ${formatRate(up)} to the server`;
  if (Math.min(down, up) >= THROUGHPUT_WARNING_BPS) return ok(tried, result);
  return warning(
    tried,
    result,
    "Large responses will be slow. Visitors' downloads use the direction to the server.",
  );
}

function formatMs(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}

function formatRate(bitsPerSecond: number): string {
  const mbps = bitsPerSecond / 1_000_000;
  return `${mbps < 10 ? mbps.toFixed(1) : Math.round(mbps)} Mbit/s`;
}
