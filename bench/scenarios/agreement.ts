/**
 * Sends a hundred thousand requests and compares the visitors' own count with the counts of every part of the API. All
 * of them must be equal, even when the visitors are spread over several objects.
 */
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { callApi } from "../api.ts";
import type { Row } from "../report.ts";
import type { BenchStack } from "../stack.ts";

const REQUESTS = 100_000;
const CONNECTIONS = 64;
const PAGE_ROWS = 500;
/** How long after the last response all reports must have arrived. */
const REPORT_MAX_MS = 180_000;
const SHARDS = 4;
/** How long the edge remembers that a tunnel has one object. */
const ROUTE_CACHED_MS = 60_000;

interface Totals {
  requests: number;
  bytesOut: number;
}

export async function benchShardedAgreement(stack: BenchStack): Promise<Row[]> {
  await callApi(stack, "PUT", `/tunnels/${stack.tunnelId}/shards`, { shards: SHARDS });
  await sleep(ROUTE_CACHED_MS);
  const rows = await benchAgreement(stack);
  return rows.map((row) => ({ ...row, group: `${row.group}, over ${SHARDS} objects` }));
}

export async function benchAgreement(stack: BenchStack): Promise<Row[]> {
  const startedAt = performance.now();
  const visitors = await visit(stack);
  const seconds = (performance.now() - startedAt) / 1000;
  await waitForReports(stack, visitors);

  const [tunnel] = await callApi<{ totalRequests: number; bytesOut: number }[]>(
    stack,
    "GET",
    "/tunnels",
  );
  const metrics = await callApi<Record<string, number>>(stack, "GET", "/metrics");
  const exposition = await callApi<string>(stack, "GET", "/metrics/prometheus");
  const found: [string, Totals][] = [
    ["visitors", visitors],
    ["GET /inspector, page by page", await countInspected(stack)],
    ["GET /tunnels", { requests: tunnel!.totalRequests, bytesOut: tunnel!.bytesOut }],
    [
      "GET /metrics",
      { requests: metrics.requests_last_24h!, bytesOut: metrics.bytes_out_last_24h! },
    ],
    [
      "GET /metrics/timeseries",
      {
        requests: await sumSeries(stack, "requests"),
        bytesOut: await sumSeries(stack, "bytes_out"),
      },
    ],
    [
      "GET /metrics/prometheus",
      {
        requests: sumSamples(exposition, "underpass_requests_total"),
        bytesOut: sumSamples(exposition, "underpass_bytes_out_total"),
      },
    ],
  ];
  const agree = ({ requests, bytesOut }: Totals) =>
    requests === visitors.requests && bytesOut === visitors.bytesOut;
  return found.map(([path, counted]) => ({
    group: `agreement, ${Math.round(visitors.requests / seconds)} requests/s`,
    path,
    requests: counted.requests,
    "bytes out": counted.bytesOut,
    agrees: agree(counted) ? "yes" : "no",
  }));
}

/** Each connection sends its next request when the last response is complete, until all are sent. */
async function visit({ server, host }: BenchStack): Promise<Totals> {
  const counted: Totals = { requests: 0, bytesOut: 0 };
  const request = `GET / HTTP/1.1\r\nhost: ${host}\r\n\r\n`;
  let left = REQUESTS;
  /** Each has an address of its own, by which the edge chooses one of a tunnel's objects. */
  const visitor = (index: number) =>
    new Promise<void>((resolve, reject) => {
      const localAddress = `127.0.0.${1 + index}`;
      const socket = connect({ port: server.port, host: "127.0.0.1", localAddress });
      let pending = "";
      const next = () => {
        if (left === 0) {
          socket.destroy();
          return resolve();
        }
        left -= 1;
        socket.write(request);
      };
      socket.setNoDelay(true).setEncoding("latin1").on("error", reject).on("connect", next);
      socket.on("data", (text: string) => {
        pending += text;
        const end = pending.indexOf("\r\n\r\n");
        const length = Number(/content-length: (\d+)/i.exec(pending)?.[1] ?? 0);
        if (end < 0 || pending.length < end + 4 + length) return;
        pending = "";
        counted.requests += 1;
        counted.bytesOut += length;
        next();
      });
    });
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, index) => visitor(index)));
  return counted;
}

/** Waits until the last report has arrived: tunnels report their counters to the database every few seconds. */
async function waitForReports(stack: BenchStack, { requests }: Totals): Promise<void> {
  const until = Date.now() + REPORT_MAX_MS;
  while (Date.now() < until) {
    const metrics = await callApi<{ requests_last_24h: number }>(stack, "GET", "/metrics");
    if (metrics.requests_last_24h >= requests) return;
    await sleep(250);
  }
}

async function countInspected(stack: BenchStack): Promise<Totals> {
  const ids = new Set<string>();
  let bytesOut = 0;
  for (let after = ""; ;) {
    const path = `/inspector?limit=${PAGE_ROWS}${after === "" ? "" : `&after=${after}`}`;
    const page = await callApi<{ id: string; response_size: number }[]>(stack, "GET", path);
    for (const { id, response_size: size } of page) {
      ids.add(id);
      bytesOut += size;
    }
    if (page.length < PAGE_ROWS) return { requests: ids.size, bytesOut };
    after = page.at(-1)!.id;
  }
}

async function sumSeries(stack: BenchStack, metric: string): Promise<number> {
  const path = `/metrics/timeseries?metric=${metric}&window=1h`;
  const points = await callApi<{ value: number }[]>(stack, "GET", path);
  return points.reduce((sum, { value }) => sum + value, 0);
}

/** The sum of all samples of a metric family, regardless of labels. */
function sumSamples(exposition: string, family: string): number {
  const lines = exposition.matchAll(new RegExp(`^${family}(?:\\{.*\\})? (\\d+)$`, "gm"));
  return [...lines].reduce((sum, [, value]) => sum + Number(value), 0);
}
