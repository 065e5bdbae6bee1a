/** Watchers of 500 requests per second: whether each receives all of them, and with what delay. */
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { visitPaced } from "../paced-visits.ts";
import type { Row } from "../report.ts";
import type { BenchOptions } from "../settings.ts";
import type { BenchStack } from "../stack.ts";
import { percentile } from "../statistics.ts";

const WATCHERS = [1, 200];

export async function benchWatching(stack: BenchStack, { seconds }: BenchOptions): Promise<Row[]> {
  const rows: Row[] = [];
  for (const watchers of WATCHERS) rows.push(await measure(stack, watchers, seconds));
  return rows;
}

async function measure(stack: BenchStack, watchers: number, seconds: number): Promise<Row> {
  const receivedAtMs = new Map<string, number>();
  const allWatchers = Array.from({ length: watchers }, () => new Watcher(stack));
  await Promise.all(allWatchers.map(({ opened }) => opened));
  allWatchers[0]!.onPath = (path) =>
    receivedAtMs.set(path, performance.timeOrigin + performance.now());
  const answeredAtMs = await visitPaced(stack, seconds);
  const sent = answeredAtMs.size;
  const deadlineMs = performance.now() + 30_000;
  while (allWatchers.some(({ accounted }) => accounted < sent) && performance.now() < deadlineMs) {
    await sleep(50);
  }
  const late = [...answeredAtMs].map(([path, atMs]) => (receivedAtMs.get(path) ?? Infinity) - atMs);
  const toLateness = (part: number) => Math.max(0, Math.round(percentile(late, part)));
  for (const watcher of allWatchers) watcher.close();
  return {
    group: "watching",
    watchers,
    "requests/s": Math.round(sent / seconds),
    requests: sent,
    "received all": allWatchers.filter(({ received }) => received === sent).length,
    missed: allWatchers.reduce((sum, { missed }) => sum + missed, 0),
    "late p50 ms": toLateness(0.5),
    "late p99 ms": toLateness(0.99),
  };
}

class Watcher {
  received = 0;
  missed = 0;
  onPath: ((path: string) => void) | undefined;
  readonly opened: Promise<void>;
  readonly #socket: WebSocket;

  constructor({ server, accessToken, tunnelId }: BenchStack) {
    const query = `batch=1&tunnel_id=${tunnelId}`;
    const url = `${server.url.replace("http", "ws")}/inspector/ws?${query}`;
    this.#socket = new WebSocket(url, ["underpass.inspector", `bearer.${accessToken}`], {
      perMessageDeflate: false,
    });
    this.opened = new Promise((resolve, reject) => {
      this.#socket.on("open", resolve);
      this.#socket.on("error", reject);
    });
    this.#socket.on("message", (data: Buffer) => this.#received(data.toString("latin1")));
  }

  get accounted(): number {
    return this.received + this.missed;
  }

  close(): void {
    this.#socket.terminate();
  }

  /** Parsing each message in all two hundred watchers would use more CPU than the server, so only the first one does. */
  #received(text: string): void {
    if (text.startsWith('{"type":"sync"')) return this.#socket.send(text);
    if (text.startsWith('{"type":"missed"')) {
      this.missed += (JSON.parse(text) as { count: number }).count;
      return;
    }
    this.received += text.split('"tunnel_id"').length - 1;
    if (!this.onPath) return;
    const { requests } = JSON.parse(text) as { requests: { path: string }[] };
    for (const { path } of requests) this.onPath(path);
  }
}
