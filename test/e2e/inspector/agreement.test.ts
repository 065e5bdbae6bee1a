/** All reports of a tunnel's traffic agree with what its visitors counted themselves. */
import { Agent, createServer, request, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { CaptureSummary } from "../../../protocol/schemas/inspector/captures.ts";
import type { Metrics, SeriesPoint } from "../../../protocol/schemas/metrics.ts";
import { waitUntil, type Person } from "../../harness/server/api.ts";
import {
  startTunnelOwner,
  type OwnedTunnel,
  type TunnelOwner,
} from "../../harness/tunnel/owned-tunnel.ts";
import { createRandom } from "../../harness/random.ts";
import { requestCounterReport } from "../../harness/tunnel/counter-report.ts";
import { listCaptures } from "../../harness/tunnel/visited-tunnel.ts";

const REQUESTS = 2_000;
const AT_ONCE = 32;
const BODY_MAX_BYTES = 500;

let owned: TunnelOwner;
let owner: Person;
let site: Server;
let tunnel: OwnedTunnel;
const connections = new Agent({ keepAlive: true, maxSockets: AT_ONCE });

beforeAll(async () => {
  // Responds with the status and the number of bytes that the path names.
  site = createServer((request, answer) => {
    const [, status, length] = (request.url ?? "").split("/");
    request.resume().on("end", () => {
      answer.writeHead(Number(status)).end("x".repeat(Number(length)));
    });
  });
  site.listen(0, "127.0.0.1");
  await once(site, "listening");
  owned = await startTunnelOwner();
  owner = owned.owner;
  tunnel = await owned.expose("counted", (site.address() as AddressInfo).port);
});
afterAll(async () => {
  connections.destroy();
  await owned.stop();
  site.close();
});

interface VisitorCounts {
  requests: number;
  bytesIn: number;
  bytesOut: number;
  byClass: Record<string, number>;
}

/** @returns the visitors' own counts. */
async function visitMany(): Promise<VisitorCounts> {
  const random = createRandom(9);
  const counted: VisitorCounts = { requests: 0, bytesIn: 0, bytesOut: 0, byClass: {} };
  let left = REQUESTS;
  const visitor = async () => {
    while (left > 0) {
      left -= 1;
      const status = random.pick([200, 200, 201, 302, 404, 500]);
      const sent = "y".repeat(random.below(BODY_MAX_BYTES));
      const answer = await visit(`/${status}/${random.below(BODY_MAX_BYTES)}`, sent);
      counted.requests += 1;
      counted.bytesIn += sent.length;
      counted.bytesOut += answer.bytes;
      const group = `${String(answer.status)[0]}xx`;
      counted.byClass[group] = (counted.byClass[group] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, visitor));
  return counted;
}

function visit(path: string, sent: string): Promise<{ status: number; bytes: number }> {
  const { port } = owned.api.server;
  const headers = { host: `counted.localhost:${port}`, "content-length": sent.length };
  return new Promise((resolve, reject) => {
    request({ agent: connections, port, path, method: "POST", headers }, (answer) => {
      let bytes = 0;
      answer.on("data", (chunk: Buffer) => (bytes += chunk.length));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, bytes }));
      answer.on("error", reject);
    })
      .on("error", reject)
      .end(sent);
  });
}

async function countCaptured(): Promise<VisitorCounts> {
  const all: CaptureSummary[] = [];
  for (let after: string | undefined; ; after = all.at(-1)!.id) {
    const { body } = await listCaptures(owner, {
      limit: 500,
      ...(after !== undefined && { after }),
    });
    all.push(...body);
    if (body.length < 500) break;
  }
  const byClass: Record<string, number> = {};
  for (const { status } of all) {
    const group = `${String(status)[0]}xx`;
    byClass[group] = (byClass[group] ?? 0) + 1;
  }
  const sum = (of: (one: CaptureSummary) => number) => all.reduce((sum, one) => sum + of(one), 0);
  return {
    requests: new Set(all.map(({ id }) => id)).size,
    bytesIn: sum((one) => one.request_size),
    bytesOut: sum((one) => one.response_size),
    byClass,
  };
}

async function sumSeries(metric: string, window: string): Promise<number> {
  const path = `/metrics/timeseries?metric=${metric}&window=${window}`;
  const { body } = await owner.get<SeriesPoint[]>(path);
  return body.reduce((sum, { value }) => sum + value, 0);
}

/** The samples of one family by the value of their only label. */
function readSamples(exposition: string, family: string): Record<string, number> {
  const lines = exposition.matchAll(new RegExp(`^${family}(?:\\{\\w+="(\\w+)"\\})? (\\d+)$`, "gm"));
  return Object.fromEntries([...lines].map(([, label = "all", value]) => [label, Number(value)]));
}

test(
  "visitors, captured requests, lists, metrics, series, Prometheus and usage agree",
  { timeout: 300_000 },
  async () => {
    const counted = await visitMany();
    const { requests, bytesIn, bytesOut, byClass } = counted;
    expect(requests).toBe(REQUESTS);
    await requestCounterReport(owner, tunnel.id);
    expect(
      await waitUntil(async () => {
        const found = await countCaptured();
        return found.requests >= requests && found.bytesOut >= bytesOut && found;
      }, 60_000),
    ).toEqual(counted);

    await waitUntil(async () => {
      const { body } = await owner.get<Metrics>("/metrics");
      return body.requests_last_24h >= requests && body.bytes_out_last_24h >= bytesOut;
    }, 60_000);
    expect((await owner.get<Metrics>("/metrics")).body).toMatchObject({
      requests_last_24h: requests,
      bytes_in_last_24h: bytesIn,
      bytes_out_last_24h: bytesOut,
    });
    expect(await tunnel.getListed()).toMatchObject({ totalRequests: requests, bytesIn, bytesOut });
    for (const window of ["1h", "24h", "7d", "30d"]) {
      const sums = [];
      for (const metric of ["requests", "bytes_in", "bytes_out"])
        sums.push(await sumSeries(metric, window));
      expect([window, ...sums]).toEqual([window, requests, bytesIn, bytesOut]);
    }
    const { body: exposition } = await owner.get<string>("/metrics/prometheus");
    expect(readSamples(exposition, "underpass_requests_total")).toMatchObject(byClass);
    expect(readSamples(exposition, "underpass_bytes_in_total")).toEqual({ all: bytesIn });
    expect(readSamples(exposition, "underpass_bytes_out_total")).toEqual({ all: bytesOut });
    const { body: usage } = await owner.get("/usage");
    expect(usage).toMatchObject({ requests, bytes: bytesIn + bytesOut });
  },
);
