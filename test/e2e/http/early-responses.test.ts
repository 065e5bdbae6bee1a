/** A local server that answers an upload before it has read it, and closes the connection. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { exchange } from "../../harness/tunnel/raw-http.ts";
import { startStack, type Stack } from "../../harness/server/stack.ts";

const CONCURRENCY = 4;
const MB = 1_000_000;

let stack: Stack;
const site = createServer((_, response) => {
  response.writeHead(413, { connection: "close", "content-type": "text/plain" });
  response.end("too large");
});

beforeAll(async () => {
  site.listen(0, "127.0.0.1");
  [stack] = await Promise.all([startStack(), once(site, "listening")]);
  await stack.expose({ port: (site.address() as AddressInfo).port, subdomain: "impatient" });
});
afterAll(async () => {
  await stack.stop();
  site.closeAllConnections();
  site.close();
});

const buildHead = (bytes: number) =>
  `POST / HTTP/1.1\r\nHost: impatient.localhost:${stack.server.port}\r\nContent-Length: ${bytes}\r\n\r\n`;

/** @returns how often each outcome occurred. */
async function upload(bytes: number, times: number): Promise<Record<string, number>> {
  const request = Buffer.concat([Buffer.from(buildHead(bytes)), Buffer.alloc(bytes)]);
  const outcomes: Record<string, number> = {};
  let left = times;
  const visitor = async (): Promise<void> => {
    while (left-- > 0) {
      const outcome = await exchange(stack.server.port, request).then(
        ({ status, body }) => `${status} ${body.toString()}`,
        (error: unknown) => String(error),
      );
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, visitor));
  return outcomes;
}

test.each([
  [100_000, 100],
  [20 * MB, 100],
])(
  "an early answer to an upload of %i bytes reaches the visitor, every time",
  async (bytes, times) => {
    expect(await upload(bytes, times)).toEqual({ "413 too large": times });
  },
);

test("an early answer is complete although the upload pauses", async () => {
  const paused = Buffer.concat([Buffer.from(buildHead(20 * MB)), Buffer.alloc(100_000)]);
  const answer = await exchange(stack.server.port, paused);
  expect([answer.status, answer.body.toString()]).toEqual([413, "too large"]);
});
