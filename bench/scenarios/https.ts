/**
 * What HTTPS of the server itself costs, beside plain HTTP in the same run: large bodies, small requests over connections
 * that are kept, and new connections. Agents use HTTPS as visitors do, or plain HTTP.
 */
import { connect, type ClientHttp2Session } from "node:http2";
import { HttpsTestServer, SERVICE_DOMAIN } from "../../test/harness/tunnel/https-server.ts";
import {
  download,
  MB,
  measureTransfer,
  upload,
  visitByHttp1,
  visitByHttp2,
  type Visit,
} from "../bodies.ts";
import { listServerProcesses, startCpuMeter } from "../processes.ts";
import type { Row } from "../report.ts";
import { ROUNDS, UNLIMITED_MBPS } from "../settings.ts";
import type { BenchStack } from "../stack.ts";
import { medianBy, round } from "../statistics.ts";

const TRANSFER_BYTES = 600 * MB;
const SMALL_REQUESTS = 4_000;
const NEW_CONNECTIONS = 400;
const CONCURRENCY = 8;
/** What a browser lets a server send before it has read anything. */
const WINDOW_BYTES = 6 * 2 ** 20;
/** Subdomains of the tunnels, by what their agents use. */
const PLAIN = "plain";
const ENCRYPTED = "encrypted";
const SMALL_BODY_BYTES = 13;

export async function benchHttps({ origin }: BenchStack): Promise<Row[]> {
  await using server = await HttpsTestServer.start();
  const { port: plainPort, url } = server.api.server;
  const scope = { bandwidthLimitMbps: UNLIMITED_MBPS };
  const agents = {
    [PLAIN]: await server.share(PLAIN, origin.port, { scope, url }),
    [ENCRYPTED]: await server.share(ENCRYPTED, origin.port, { scope }),
  };
  const serverProcesses = await listServerProcesses(server.api.server);
  const frontProxy = serverProcesses.find(({ name }) => name === "front-proxy")!;
  const own = serverProcesses.filter(({ name }) => name !== "gateway");
  const plain = { port: plainPort, host: `${PLAIN}.${SERVICE_DOMAIN}:${plainPort}` };
  const secure = (name: string) => ({
    port: server.httpsPort,
    host: `${name}.${SERVICE_DOMAIN}:${server.httpsPort}`,
    ca: server.ca,
  });
  const sessions: ClientHttp2Session[] = [];
  const visitByOneSession = (name: string): Visit =>
    visitByHttp2(() => {
      const session = openSession(server, name);
      sessions.push(session);
      return session;
    });
  const paths: { name: string; agent: keyof typeof agents; visit: Visit }[] = [
    { name: "plain HTTP", agent: PLAIN, visit: visitByHttp1(plain) },
    { name: "HTTPS to the visitor", agent: PLAIN, visit: visitByHttp1(secure(PLAIN)) },
    { name: "HTTP/2 to the visitor", agent: PLAIN, visit: visitByOneSession(PLAIN) },
    { name: "HTTPS to both", agent: ENCRYPTED, visit: visitByHttp1(secure(ENCRYPTED)) },
    {
      name: "HTTP/2 to the visitor, HTTPS to the agent",
      agent: ENCRYPTED,
      visit: visitByOneSession(ENCRYPTED),
    },
  ];
  const rows: Row[] = [];
  for (const [direction, transfer] of [
    ["download", download],
    ["upload", upload],
  ] as const) {
    const rounds = await inTurns(paths, ({ agent, visit }) => {
      const processes = [...own, { name: "agent", pid: agents[agent].child.pid ?? 0 }];
      return measureTransfer(processes, TRANSFER_BYTES, () => transfer(visit, TRANSFER_BYTES));
    });
    for (const [{ name }, measured] of rounds) {
      const result = medianBy(measured, (each) => each["MB/s"]);
      rows.push({ group: "transfers over HTTPS", direction, path: name, ...result });
    }
  }
  const kinds: { connections: string; path: string; visit: Visit; requests: number }[] = [
    ...[CONCURRENCY, 0].flatMap((connections) => {
      const requests = connections > 0 ? SMALL_REQUESTS : NEW_CONNECTIONS;
      const kind = { connections: connections > 0 ? "kept" : "new for each", requests };
      return [
        { ...kind, path: "plain HTTP", visit: visitByHttp1(plain, connections) },
        { ...kind, path: "HTTPS", visit: visitByHttp1(secure(PLAIN), connections) },
      ];
    }),
    {
      connections: "one for all",
      requests: SMALL_REQUESTS,
      path: "HTTP/2",
      visit: visitByOneSession(PLAIN),
    },
  ];
  const rounds = await inTurns(kinds, ({ visit, requests }) =>
    measureRequests(frontProxy.pid, visit, requests),
  );
  for (const [{ connections, path }, measured] of rounds) {
    const result = medianBy(measured, (each) => each["front proxy's CPU µs"]);
    rows.push({ group: "small requests over HTTPS", connections, path, ...result });
  }
  for (const session of sessions) session.destroy();
  return rows;
}

function openSession({ ca, httpsPort }: HttpsTestServer, subdomain: string): ClientHttp2Session {
  const servername = `${subdomain}.${SERVICE_DOMAIN}`;
  const session = connect(`https://${servername}:${httpsPort}`, {
    ca,
    host: "127.0.0.1",
    servername,
    settings: { initialWindowSize: WINDOW_BYTES },
  });
  session.once("connect", () => session.setLocalWindowSize(WINDOW_BYTES));
  return session;
}

/** Measures each variant in turns. */
async function inTurns<Variant, Result>(
  variants: Variant[],
  measure: (variant: Variant) => Promise<Result>,
): Promise<Map<Variant, Result[]>> {
  const results = new Map(variants.map((variant) => [variant, [] as Result[]]));
  for (let i = 0; i < ROUNDS; i++)
    for (const [variant, measured] of results) measured.push(await measure(variant));
  return results;
}

async function measureRequests(frontProxyPid: number, visit: Visit, count: number) {
  const readCpuMs = startCpuMeter([frontProxyPid]);
  const startedAt = performance.now();
  let left = count;
  const sendAll = async (): Promise<void> => {
    while (left-- > 0) await download(visit, SMALL_BODY_BYTES);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, sendAll));
  const seconds = (performance.now() - startedAt) / 1000;
  return {
    "req/s": Math.round(count / seconds),
    "front proxy's CPU µs": round((readCpuMs()[0]! * 1000) / count),
  };
}
