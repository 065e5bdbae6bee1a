/** The counters in a tunnel's row agree with what its visitors counted themselves. */
import { once } from "node:events";
import { Agent, createServer, request, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { expose, type ExposedTunnel } from "../../../agent/expose.ts";
import type { Metrics, SeriesPoint } from "../../../protocol/schemas/metrics.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  mintToken,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { findProblems, readExposition } from "../../harness/formats/exposition.ts";
import { createRandom } from "../../harness/random.ts";
import { requestCounterReport } from "../../harness/tunnel/counter-report.ts";

const BODY_MAX_BYTES = 100_000;

interface TrafficCounts {
  totalRequests: number;
  bytesIn: number;
  bytesOut: number;
}

let api: TestApi;
let owner: Person;
let site: Server;
let token: Buffer;
const connections = new Agent({ keepAlive: true });

beforeAll(async () => {
  // Responds with the number of bytes that the path names, if any, and echoes WebSocket messages.
  site = createServer((request, answer) => {
    if (request.url === "/never") return;
    request.resume().on("end", () => answer.end(Buffer.alloc(Number(request.url?.slice(1)))));
  });
  new WebSocketServer({ server: site }).on("connection", (socket) => {
    socket.on("message", (message: Buffer) => socket.send(message));
  });
  site.listen(0, "127.0.0.1");
  api = await startApi();
  owner = await api.owner();
  token = Buffer.from((await mintToken(owner)).wireBytes, "base64");
});
afterAll(async () => {
  connections.destroy();
  site.closeAllConnections();
  site.close();
  await api.stop();
});

const share = (subdomain: string, by = token): Promise<ExposedTunnel> => {
  const { port } = site.address() as AddressInfo;
  return expose({ port, server: api.server.url, token: by, subdomain });
};

async function visit(
  subdomain: string,
  requestBytes: number,
  responseBytes: number,
): Promise<TrafficCounts> {
  const clientRequest = request({
    agent: connections,
    port: api.server.port,
    host: "127.0.0.1",
    method: "POST",
    path: `/${responseBytes}`,
    headers: { host: `${subdomain}.localhost` },
  });
  clientRequest.end(Buffer.alloc(requestBytes));
  const [answer] = (await once(clientRequest, "response")) as [
    NodeJS.ReadableStream & { statusCode: number },
  ];
  let bytesOut = 0;
  for await (const chunk of answer) bytesOut += (chunk as Buffer).length;
  if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}`);
  return { totalRequests: 1, bytesIn: requestBytes, bytesOut };
}

async function readCounts(subdomain: string): Promise<TrafficCounts> {
  const { body } = await owner.get<Tunnel[]>("/tunnels");
  const { totalRequests, bytesIn, bytesOut } = body.find(({ name }) => name === subdomain)!;
  return { totalRequests, bytesIn, bytesOut };
}

/** Waits until every count has reached its minimum. */
function waitForCounts(subdomain: string, least: TrafficCounts): Promise<TrafficCounts> {
  return waitUntil(async () => {
    const now = await readCounts(subdomain).catch(() => undefined);
    const isReached =
      now &&
      now.totalRequests >= least.totalRequests &&
      now.bytesIn >= least.bytesIn &&
      now.bytesOut >= least.bytesOut;
    return isReached && now;
  });
}

function sumCounts(parts: TrafficCounts[]): TrafficCounts {
  const sum = { totalRequests: 0, bytesIn: 0, bytesOut: 0 };
  for (const { totalRequests, bytesIn, bytesOut } of parts) {
    sum.totalRequests += totalRequests;
    sum.bytesIn += bytesIn;
    sum.bytesOut += bytesOut;
  }
  return sum;
}

/** The organization's counts, from each place where they can be read. */
async function readOtherCounts(): Promise<Record<string, TrafficCounts>> {
  const { body: metrics } = await owner.get<Metrics>("/metrics");
  const sumOfSeries = async (metric: string) => {
    const path = `/metrics/timeseries?metric=${metric}&window=1h`;
    const { body } = await owner.get<SeriesPoint[]>(path);
    return body.reduce((sum, { value }) => sum + value, 0);
  };
  const { body: text } = await owner.get<string>("/metrics/prometheus");
  const exposition = readExposition(text);
  expect(findProblems(exposition)).toEqual([]);
  return {
    metrics: {
      totalRequests: metrics.requests_last_24h,
      bytesIn: metrics.bytes_in_last_24h,
      bytesOut: metrics.bytes_out_last_24h,
    },
    series: {
      totalRequests: await sumOfSeries("requests"),
      bytesIn: await sumOfSeries("bytes_in"),
      bytesOut: await sumOfSeries("bytes_out"),
    },
    prometheus: {
      totalRequests: exposition.sum("underpass_requests_total"),
      bytesIn: exposition.value("underpass_bytes_in_total"),
      bytesOut: exposition.value("underpass_bytes_out_total"),
    },
    tunnels: {
      totalRequests: exposition.sum("underpass_tunnel_requests_total"),
      bytesIn: exposition.sum("underpass_tunnel_bytes_in_total"),
      bytesOut: exposition.sum("underpass_tunnel_bytes_out_total"),
    },
  };
}

test("every request and every byte is in the row after the next report", async () => {
  const tunnel = await share("exact");
  const random = createRandom(1);
  const size = () => random.below(BODY_MAX_BYTES);
  const parts: TrafficCounts[] = [];
  for (let round = 0; round < 20; round += 1) {
    const visits = Array.from({ length: 10 }, () => visit("exact", size(), size()));
    parts.push(...(await Promise.all(visits)));
  }
  const socket = new WebSocket(`ws://127.0.0.1:${api.server.port}/`, {
    headers: { host: "exact.localhost" },
  });
  await once(socket, "open");
  socket.send(Buffer.alloc(BODY_MAX_BYTES));
  await once(socket, "message");
  socket.close();
  parts.push({ totalRequests: 1, bytesIn: BODY_MAX_BYTES, bytesOut: BODY_MAX_BYTES });

  const sum = sumCounts(parts);
  await requestCounterReport(owner, tunnel.tunnelId);
  expect(await waitForCounts("exact", sum)).toEqual(sum);
  // One transaction writes all of them.
  const otherCounts = await readOtherCounts();
  expect(Object.values(otherCounts)).toEqual(Object.values(otherCounts).map(() => sum));
  await tunnel.close();
});

test("a kill -9 loses nothing that the row has shown, and adds nothing", async () => {
  const tunnel = await share("killed");
  const visits = (count: number) =>
    Promise.all(Array.from({ length: count }, () => visit("killed", 1_000, 2_000)));
  const shown = sumCounts(await visits(20));
  await requestCounterReport(owner, tunnel.tunnelId);
  await waitForCounts("killed", shown);
  const before = await readOtherCounts();
  const lost = sumCounts(await visits(20));
  const reconnected = once(tunnel.events, "reconnected");
  process.kill(await api.server.getPid("workerd"), "SIGKILL");
  await reconnected;

  const least = sumCounts([shown, ...(await visits(1))]);
  await requestCounterReport(owner, tunnel.tunnelId);
  const counts = await waitForCounts("killed", least);
  const most = sumCounts([least, lost]);
  for (const count of ["totalRequests", "bytesIn", "bytesOut"] as const) {
    expect(counts[count]).toBeGreaterThanOrEqual(least[count]);
    expect(counts[count]).toBeLessThanOrEqual(most[count]);
  }
  const after = await readOtherCounts();
  for (const [source, { totalRequests, bytesIn, bytesOut }] of Object.entries(before)) {
    // Counts of the whole organization: other tunnels' traffic has not changed.
    const otherTunnels = totalRequests - shown.totalRequests;
    expect(after[source]!.totalRequests).toBeGreaterThan(totalRequests);
    expect(after[source]!.totalRequests).toBeLessThanOrEqual(most.totalRequests + otherTunnels);
    expect(after[source]!.bytesIn).toBeGreaterThan(bytesIn);
    expect(after[source]!.bytesOut).toBeGreaterThan(bytesOut);
  }
  await tunnel.close();
});

test("refused and disconnected visitors are counted by reason, in their organization only", async () => {
  const other = await api.owner();
  const otherToken = Buffer.from((await mintToken(other)).wireBytes, "base64");
  const tunnel = await share("refusing", otherToken);
  const scrape = async (person: Person) =>
    readExposition((await person.get<string>("/metrics/prometheus")).body);
  const sendRequest = (path: string) =>
    request({
      port: api.server.port,
      host: "127.0.0.1",
      path,
      headers: { host: "refusing.localhost" },
    }).end();
  const labels = { tunnel: "refusing" };

  await visit("refusing", 0, 10);
  await visit("refusing", 0, 10);
  for (const leave of [
    (socket: Socket) => socket.resetAndDestroy(),
    // It would still read, but a visitor that has left altogether sends the same FIN.
    (socket: Socket) => socket.end(),
  ]) {
    const requested = once(site, "request");
    const leavingRequest = sendRequest("/never").on("error", () => undefined);
    const [{ socket: atSite }] = (await requested) as [IncomingMessage];
    const aborted = once(atSite, "close");
    leave(leavingRequest.socket!);
    await aborted;
  }
  await other.put(`/tunnels/${tunnel.tunnelId}/maintenance`, {});
  for (let n = 0; n < 3; n += 1) {
    const [answer] = (await once(sendRequest("/1"), "response")) as [IncomingMessage];
    answer.resume();
    expect(answer.statusCode).toBe(503);
  }
  await other.delete(`/tunnels/${tunnel.tunnelId}/maintenance`);
  await waitUntil(
    async () => (await scrape(other)).sum("underpass_tunnel_requests_total", labels) === 7,
  );
  // One transaction writes everything, but a scrape reads its families one by one, so only the next scrape is complete.
  const exposition = await scrape(other);
  const readTunnelRequests = (code: string) =>
    exposition.value("underpass_tunnel_requests_total", { ...labels, code });
  expect(["2xx", "5xx", "left"].map(readTunnelRequests)).toEqual([2, 3, 2]);
  expect(exposition.sum("underpass_refusals_total", { error: "maintenance" })).toBe(3);
  expect(exposition.sum("underpass_refusals_total")).toBe(3);
  expect(exposition.sum("underpass_request_duration_seconds_count")).toBe(2);
  const thirdOwner = await api.owner();
  expect((await scrape(thirdOwner)).sum("underpass_requests_total")).toBe(0);
  expect(
    (await scrape(thirdOwner)).families.get("underpass_tunnel_requests_total")?.samples,
  ).toEqual([]);
  await tunnel.close();
});

test("a scrape after a crash does not count agents that have not reconnected", async () => {
  const other = await api.owner();
  const otherToken = Buffer.from((await mintToken(other)).wireBytes, "base64");
  const [lostAgent, returningAgent] = [
    await share("gone", otherToken),
    await share("back", otherToken),
  ];
  const agents = async () => {
    const { body } = await other.get<string>("/metrics/prometheus");
    return readExposition(body).value("underpass_agents_connected");
  };
  await waitUntil(async () => (await agents()) === 2);
  const reconnected = once(returningAgent.events, "reconnected");
  process.kill(await api.server.getPid("workerd"), "SIGKILL");
  await lostAgent.close();
  await reconnected;
  expect(await agents()).toBe(1);
  // Presence in a row is trusted for 15 seconds: an agent that has just registered is not in the list yet.
  await api.sql(
    "update tunnels set last_seen_at = now() - interval '16 seconds' where org_id = $1",
    [other.orgId],
  );
  await waitUntil(async () => (await other.get<Metrics>("/metrics")).body.active_tunnels === 1);
  await returningAgent.close();
});
