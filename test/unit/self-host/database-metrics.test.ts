/** What a scrape asks PostgreSQL. */
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  DATABASE_MAX_MS,
  readDatabaseMetrics,
} from "../../../self-host/metrics/database-metrics.ts";

const COLUMNS = ["connections", "connectionsMax", "bytes"];

const server = createServer();
let url: string;
beforeEach(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `postgres://user:password@127.0.0.1:${(server.address() as AddressInfo).port}/database`;
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(async () => {
  vi.useRealTimers();
  server.close();
  await once(server, "close");
});

function encode(type: string, ...parts: (Buffer | string)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

const READY = encode("Z", "I");
const AUTHENTICATED = Buffer.concat([encode("R", Buffer.alloc(4)), READY]);
/** A row with the numbers 1, 2 and 3. */
const ANSWER = Buffer.concat([
  encode("T", int16(3), ...COLUMNS.flatMap((name) => [`${name}\0`, Buffer.alloc(18)])),
  encode("D", int16(3), ...["1", "2", "3"].flatMap((text) => [int32(1), text])),
  encode("C", "SELECT 1\0"),
  READY,
]);

function int16(value: number): Buffer {
  return Buffer.from([0, value]);
}

function int32(value: number): Buffer {
  return Buffer.from([0, 0, 0, value]);
}

/** Starts a reading. @returns it, and the server's end of its connection. */
async function start(): Promise<{ reading: Promise<unknown[]>; socket: Socket }> {
  const accepted = once(server, "connection");
  const reading = readDatabaseMetrics(url);
  // Its rejection is expected later.
  reading.catch(() => undefined);
  const [socket] = (await accepted) as [Socket];
  socket.on("error", () => undefined);
  await once(socket, "data");
  return { reading, socket };
}

async function answer(socket: Socket, elapsedMs: number, bytes: Buffer): Promise<void> {
  vi.advanceTimersByTime(elapsedMs);
  socket.write(bytes);
  await once(socket, "data");
}

test("a PostgreSQL that answers in time is read", async () => {
  const { reading, socket } = await start();
  await answer(socket, DATABASE_MAX_MS / 2, AUTHENTICATED);
  vi.advanceTimersByTime(DATABASE_MAX_MS / 2 - 1);
  socket.write(ANSWER);
  expect(await reading).toHaveLength(COLUMNS.length);
});

test("the connection and the query have two seconds together", async () => {
  const { reading, socket } = await start();
  await answer(socket, DATABASE_MAX_MS - 100, AUTHENTICATED);
  vi.advanceTimersByTime(100);
  socket.write(ANSWER);
  await expect(reading).rejects.toThrow("timeout");
});
