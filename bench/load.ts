/**
 * A load generator in a process of its own. It writes fixed bytes and only looks for the end of a response, so that it uses
 * little CPU itself. In a closed loop each connection sends its next request when the last response is complete. In an open
 * loop requests are due at a fixed rate, and the latency of each counts from when it was due, even when no connection was
 * free: a stall of the server delays all requests that are due during it, as it does for independent visitors.
 */
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { summarizeLatencies, type Latencies } from "./statistics.ts";

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
  /** The rate of an open loop. Without it, the loop is closed. */
  requestsPerSecond?: number;
}

export interface LoadResult extends Latencies {
  requestsPerSecond: number;
  errors: number;
}

const HEAD_END = Buffer.from("\r\n\r\n");

/** Sends one request at a time. */
class Connection {
  readonly #socket: Socket;
  readonly #request: Buffer;
  #pending: Buffer = Buffer.alloc(0);
  #onResponse: (isOk: boolean) => void = () => {};

  private constructor(socket: Socket, request: Buffer) {
    this.#socket = socket;
    this.#request = request;
    socket.setNoDelay(true);
    socket.on("data", (chunk) => this.#receive(chunk));
  }

  static async open(port: number, request: Buffer, onError: () => void): Promise<Connection> {
    const socket = connect(port, "127.0.0.1");
    await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    socket.on("error", onError).on("close", onError);
    return new Connection(socket, request);
  }

  send(onResponse: (isOk: boolean) => void): void {
    this.#onResponse = onResponse;
    this.#socket.write(this.#request);
  }

  close(): void {
    this.#socket.removeAllListeners("close");
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    const pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    const length = getResponseLength(pending);
    const isComplete = length >= 0 && pending.length >= length;
    this.#pending = isComplete ? pending.subarray(length) : pending;
    if (isComplete) this.#onResponse(isOk(pending));
  }
}

async function load(plan: LoadPlan): Promise<LoadResult> {
  const lines = Object.entries({ host: plan.host, ...plan.headers }).map(
    ([k, v]) => `${k}: ${v}\r\n`,
  );
  const request = Buffer.from(`GET ${plan.path} HTTP/1.1\r\n${lines.join("")}\r\n`);
  const latencies: number[] = [];
  let errors = 0;
  const countError = (): void => void (errors += 1);
  const connections = await Promise.all(
    Array.from({ length: plan.connections }, () => Connection.open(plan.port, request, countError)),
  );
  const startedAt = performance.now();
  const measuredFrom = startedAt + plan.warmUpSeconds * 1000;
  const endsAt = measuredFrom + plan.seconds * 1000;
  const record: RecordLatency = (dueAt, wasOk, countedAt) => {
    if (countedAt < measuredFrom || countedAt >= endsAt) return;
    latencies.push(performance.now() - dueAt);
    if (!wasOk) errors += 1;
  };
  await (plan.requestsPerSecond === undefined
    ? runClosedLoop(connections, endsAt, record)
    : runOpenLoop(connections, { startedAt, endsAt }, plan.requestsPerSecond, record));
  for (const connection of connections) connection.close();
  return {
    requestsPerSecond: latencies.length / plan.seconds,
    errors,
    ...summarizeLatencies(latencies),
  };
}

/**
 * @param countedAt when the request counts: in an open loop when it was due. In a closed one when it was answered, as otherwise
 * the requests in flight at the end would be missing, which are the slow ones.
 */
type RecordLatency = (dueAt: number, wasOk: boolean, countedAt: number) => void;

async function runClosedLoop(
  connections: Connection[],
  endsAt: number,
  record: RecordLatency,
): Promise<void> {
  for (const connection of connections) {
    const sendNext = (): void => {
      const sentAt = performance.now();
      if (sentAt >= endsAt) return;
      connection.send((wasOk) => {
        record(sentAt, wasOk, performance.now());
        sendNext();
      });
    };
    sendNext();
  }
  await sleep(endsAt - performance.now());
}

/** Resolves when every request that was due has been answered, or when five more seconds have passed. */
async function runOpenLoop(
  connections: Connection[],
  { startedAt, endsAt }: { startedAt: number; endsAt: number },
  requestsPerSecond: number,
  record: RecordLatency,
): Promise<void> {
  const free = [...connections];
  /** The times at which requests were due that no connection was free for. */
  const queue: number[] = [];
  let dueCount = 0;
  const send = (connection: Connection, dueAt: number): void => {
    connection.send((wasOk) => {
      record(dueAt, wasOk, dueAt);
      const next = queue.shift();
      if (next === undefined) free.push(connection);
      else send(connection, next);
    });
  };
  for (;;) {
    const dueAt = startedAt + (dueCount * 1000) / requestsPerSecond;
    if (dueAt >= endsAt) break;
    if (dueAt > performance.now()) {
      await sleep(1);
      continue;
    }
    dueCount += 1;
    // The one that was idle for longest: the server closes connections that are idle for long.
    const connection = free.shift();
    if (connection) send(connection, dueAt);
    else queue.push(dueAt);
  }
  while (free.length < connections.length && performance.now() < endsAt + 5_000) await sleep(10);
  // A request that was never answered counts as an error, and as late as the loop has waited for it.
  for (let missing = connections.length - free.length + queue.length; missing > 0; missing--)
    record(endsAt - 1, false, endsAt - 1);
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

process.once("message", (plan) => {
  void load(plan as LoadPlan).then((result) => {
    process.send?.(result);
    process.disconnect();
  });
});
