import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { Wire } from "../../../agent/tunnel/wire.ts";
import { getBackOffMs, getRefusedDelayMs } from "../../../agent/back-off.ts";
import { RECONNECT_MAX_MS } from "../../../protocol/limits.ts";
import { RECONNECT_MIN_MS } from "../../../agent/back-off.ts";

test("an agent waits at least half a second, at most five, and longer after more failures", () => {
  const longest = [0, 1, 2, 3, 4, 50, 10_000].map((failures) => getBackOffMs(failures, () => 1));
  expect(longest).toEqual([1_000, 2_000, 4_000, 5_000, 5_000, 5_000, 5_000]);
  for (const failures of [0, 3, 10_000]) {
    expect(getBackOffMs(failures, () => 0)).toBe(RECONNECT_MIN_MS);
    expect(getBackOffMs(failures)).toBeLessThanOrEqual(RECONNECT_MAX_MS);
  }
});

test("a thousand agents that lose one server reconnect spread over the whole interval", () => {
  const span = RECONNECT_MAX_MS - RECONNECT_MIN_MS;
  const tenths = new Set<number>();
  for (let agent = 0; agent < 1_000; agent += 1)
    tenths.add(Math.floor(((getBackOffMs(9) - RECONNECT_MIN_MS) / span) * 10));
  expect(tenths.size).toBe(10);
});

/** @returns whether the agent finds that nothing listens there. */
async function findRefused(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const unused = () => {};
  const events = { onWelcome: unused, onOtherVersion: unused, openStream: () => null };
  const wire = new Wire(
    {
      url: new URL(`ws://localhost:${port}/agent/connect`),
      headers: {},
      token: Buffer.alloc(1),
      authorities: undefined,
      capabilities: [],
      local: "http://localhost:3000",
    },
    {
      ...events,
      onGoingAway: unused,
      onStatus: unused,
      onLatency: unused,
      onClose: () => resolve(),
    },
  );
  await promise;
  return wire.isConnectionRefused;
}

test("an agent distinguishes a server that does not run from one that answers with an error", async () => {
  const server = createServer((_, response) => response.writeHead(503).end());
  await once(server.listen(0), "listening");
  const { port } = server.address() as AddressInfo;
  expect(await findRefused(port)).toBe(false);
  server.closeAllConnections();
  await once(server.close(), "close");
  expect(await findRefused(port)).toBe(true);
});

test("the wait is at most 2 seconds while nothing listens at the server's address", () => {
  for (let attempt = 0; attempt < 1_000; attempt += 1) {
    const delayMs = getRefusedDelayMs(attempt);
    expect(delayMs).toBeGreaterThanOrEqual(RECONNECT_MIN_MS);
    expect(delayMs).toBeLessThanOrEqual(2_000);
  }
});
