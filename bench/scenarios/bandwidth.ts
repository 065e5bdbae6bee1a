/** The throughput of tunnels whose tokens have a bandwidth limit, as counted by the receiving end in ten seconds. */
import { once } from "node:events";
import { createServer, request as httpRequest, type ClientRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expose } from "../../agent/expose.ts";
import { mintToken } from "../api.ts";
import type { Row } from "../report.ts";
import { formatPercent, round } from "../statistics.ts";
import type { BenchStack } from "../stack.ts";

const RATES_MBPS = [1, 10, 100];
const STREAMS = [1, 16];
const SECONDS = 10;
const BYTES_PER_MEGABIT = 125_000;
const CHUNK = Buffer.alloc(64 * 1024, "b");

/** A local server that sends an endless body, and reads request bodies. */
class EndlessOrigin {
  received = 0;
  readonly #server = createServer((request, response) => {
    request.on("data", (chunk: Buffer) => (this.received += chunk.length));
    if (request.method === "POST") return;
    const more = (): void => {
      while (!response.destroyed && response.write(CHUNK));
    };
    response.on("drain", more);
    more();
  });

  async start(): Promise<number> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return (this.#server.address() as AddressInfo).port;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

export async function benchBandwidth(stack: BenchStack): Promise<Row[]> {
  const rows: Row[] = [];
  for (const rate of RATES_MBPS) {
    for (const path of ["download", "upload"] as const) {
      for (const streams of STREAMS) {
        const bytes = await measureBytes(stack, rate, path, streams);
        const megabits = bytes / BYTES_PER_MEGABIT / SECONDS;
        rows.push({
          group: "bandwidth",
          "limit Mbit/s": rate,
          path,
          streams,
          "Mbit/s": round(megabits, 2),
          "of the limit": formatPercent(megabits / rate, 1),
        });
      }
    }
  }
  return rows;
}

async function measureBytes(
  stack: BenchStack,
  rate: number,
  path: "download" | "upload",
  streams: number,
): Promise<number> {
  const origin = new EndlessOrigin();
  const token = await mintToken(stack, { bandwidthLimitMbps: rate });
  const tunnel = await expose({ port: await origin.start(), server: stack.server.url, token });
  const host = new URL(tunnel.url).host;
  const received = { bytes: 0 };
  const visits = Array.from({ length: streams }, () =>
    path === "download" ? download(stack, host, received) : upload(stack, host),
  );
  await sleep(SECONDS * 1000);
  const bytes = path === "download" ? received.bytes : origin.received;
  for (const visit of visits) visit.destroy();
  origin.stop();
  await tunnel.close();
  return bytes;
}

function openRequest(stack: BenchStack, host: string, method: string): ClientRequest {
  const { port } = stack.server;
  const visit = httpRequest({ host: "127.0.0.1", port, agent: false, method, headers: { host } });
  // The request is destroyed at the end of the measurement.
  visit.on("error", () => undefined);
  return visit;
}

function download(stack: BenchStack, host: string, received: { bytes: number }): ClientRequest {
  const visit = openRequest(stack, host, "GET");
  visit.on("response", (answer) => {
    answer.on("data", (chunk: Buffer) => (received.bytes += chunk.length));
    answer.on("error", () => undefined);
  });
  return visit.end();
}

function upload(stack: BenchStack, host: string): ClientRequest {
  const visit = openRequest(stack, host, "POST");
  const more = (): void => {
    while (!visit.destroyed && visit.write(CHUNK));
  };
  visit.on("drain", more);
  more();
  return visit;
}
