/**
 * A closed-loop load generator in a process of its own: each connection sends its next request when the last response
 * is complete. It writes fixed bytes and only looks for the end of a response, so that it uses little CPU itself.
 */
import { connect, type Socket } from "node:net";

export interface LoadPlan {
  port: number;
  /** Value of the Host header. */
  host: string;
  path: string;
  headers?: Record<string, string>;
  connections: number;
  seconds: number;
  /** Seconds of load before the measurement. */
  warmUpSeconds: number;
}

export interface LoadResult {
  requestsPerSecond: number;
  /** In milliseconds. */
  p50: number;
  p90: number;
  p99: number;
  errors: number;
}

const HEAD_END = Buffer.from("\r\n\r\n");

async function load(plan: LoadPlan): Promise<LoadResult> {
  const lines = Object.entries({ host: plan.host, ...plan.headers }).map(
    ([k, v]) => `${k}: ${v}\r\n`,
  );
  const request = Buffer.from(`GET ${plan.path} HTTP/1.1\r\n${lines.join("")}\r\n`);
  const latencies: number[] = [];
  let errors = 0;
  let counting = false;
  let stopped = false;

  function drive(socket: Socket): void {
    let sentAt = 0;
    let pending = Buffer.alloc(0);
    const send = (): void => {
      sentAt = performance.now();
      socket.write(request);
    };
    socket.setNoDelay(true);
    socket.on("data", (chunk) => {
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
      const length = getResponseLength(pending);
      if (length < 0 || pending.length < length) return;
      if (counting) {
        latencies.push(performance.now() - sentAt);
        if (!isOk(pending)) errors += 1;
      }
      pending = pending.subarray(length);
      if (!stopped) send();
    });
    socket.on("error", () => (errors += 1));
    socket.on("close", () => {
      if (!stopped) errors += 1;
    });
    send();
  }

  const sockets = await Promise.all(
    Array.from({ length: plan.connections }, async () => {
      const socket = connect(plan.port, "127.0.0.1");
      await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
      return socket;
    }),
  );
  sockets.forEach(drive);
  await wait(plan.warmUpSeconds);
  counting = true;
  const startedAt = performance.now();
  await wait(plan.seconds);
  stopped = true;
  const seconds = (performance.now() - startedAt) / 1000;
  for (const socket of sockets) socket.destroy();
  latencies.sort((a, b) => a - b);
  const percentile = (part: number): number =>
    latencies[Math.floor(latencies.length * part)] ?? NaN;
  return {
    requestsPerSecond: latencies.length / seconds,
    p50: percentile(0.5),
    p90: percentile(0.9),
    p99: percentile(0.99),
    errors,
  };
}

/** @returns the length of the response from its content-length, or -1 while its header is incomplete. */
function getResponseLength(bytes: Buffer): number {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0) return -1;
  const head = bytes.toString("latin1", 0, end).toLowerCase();
  const at = head.indexOf("content-length: ");
  return end + 4 + (at < 0 ? 0 : parseInt(head.slice(at + 16), 10));
}

function isOk(bytes: Buffer): boolean {
  return bytes.toString("latin1", 9, 12) === "200";
}

function wait(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}

process.once("message", (plan) => {
  void load(plan as LoadPlan).then((result) => {
    process.send?.(result);
    process.disconnect();
  });
});
