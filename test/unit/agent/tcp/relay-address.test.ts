/** The agent of a TCP tunnel or a network, when its relay has another address after a restart. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WebSocketServer } from "ws";
import { RelayControlConnection } from "../../../../agent/relay-client/control-connection.ts";
import { RELAY_SUBPROTOCOL } from "../../../../protocol/relay/datagrams.ts";
import type { RelayAccess } from "../../../../protocol/schemas/networks.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

const STARTED_AT_MS = Date.UTC(2026, 10, 23);
const TEN_SECONDS_MS = 10_000;
const WELCOME = {
  type: "welcome",
  kind: "tunnel",
  epoch: "one",
  association: 1,
  streamKey: "AAAA",
  pool: 1,
  publicEndpoint: "127.0.0.1:20000",
};

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: STARTED_AT_MS });
  // The agent retries without its delays.
  const { setTimeout } = globalThis;
  vi.spyOn(globalThis, "setTimeout").mockImplementation((run: () => void, ms = 0) =>
    setTimeout(run, ms >= 500 && ms <= 5_000 ? 0 : ms),
  );
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

async function startRelay(port = 0) {
  const server = new WebSocketServer({
    port,
    host: "127.0.0.1",
    handleProtocols: () => RELAY_SUBPROTOCOL,
  });
  server.on("connection", (socket) => socket.send(JSON.stringify(WELCOME)));
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async stop() {
      for (const socket of server.clients) socket.terminate();
      server.close();
      await once(server, "close");
    },
  };
}

function buildAccess(port: number): RelayAccess {
  const expiresAt = new Date(STARTED_AT_MS + 300_000).toISOString();
  const relay = { id: "main", url: `ws://127.0.0.1:${port}`, host: "127.0.0.1" };
  return { ticket: "ticket", expires_at: expiresAt, relay, port: 20_000 };
}

/** An agent that is connected to a relay which has then stopped. */
async function loseRelay(getAccess: () => Promise<RelayAccess>) {
  const relay = await startRelay();
  const getFirst = vi.fn(getAccess).mockResolvedValueOnce(buildAccess(relay.port));
  const control = new RelayControlConnection({ authorities: undefined, getAccess: getFirst });
  let failedAttempts = 0;
  const reasons = new Set<string>();
  control.on("retrying", (reason) => {
    failedAttempts += 1;
    reasons.add(reason);
  });
  control.start();
  await once(control, "welcome");
  await relay.stop();
  const waitForFailures = async (count: number): Promise<void> => {
    const target = failedAttempts + count;
    await vi.waitUntil(() => failedAttempts >= target, WAIT_OPTIONS);
  };
  return { control, getAccess: getFirst, port: relay.port, reasons, waitForFailures };
}

test("asks the API for the relay's address again while it can't be reached, at most every ten seconds", async () => {
  const moved = await startRelay();
  const { control, getAccess, port, waitForFailures } = await loseRelay(() =>
    Promise.resolve(buildAccess(moved.port)),
  );
  getAccess.mockResolvedValueOnce(buildAccess(port));
  await waitForFailures(3);
  expect(getAccess).toHaveBeenCalledTimes(1);
  vi.setSystemTime(STARTED_AT_MS + TEN_SECONDS_MS);
  await waitForFailures(3);
  expect(getAccess).toHaveBeenCalledTimes(2);
  vi.setSystemTime(STARTED_AT_MS + 3 * TEN_SECONDS_MS);
  const [, access] = (await once(control, "welcome")) as [unknown, RelayAccess];
  expect(access.relay.url).toBe(`ws://127.0.0.1:${moved.port}`);
  control.close();
  await moved.stop();
});

test("returns to the relay with its ticket while the API gives no other one, and says why it does not", async () => {
  const { control, getAccess, port, reasons, waitForFailures } = await loseRelay(() =>
    Promise.reject(new Error("the API is down")),
  );
  vi.setSystemTime(STARTED_AT_MS + TEN_SECONDS_MS);
  await waitForFailures(3);
  expect(getAccess).toHaveBeenCalledTimes(2);
  const refused = `127.0.0.1:${port} refuses connections; ask the server's operator to check the relay's address (RELAY_HOST, RELAY_URL), and that the server runs`;
  expect([...reasons]).toEqual([
    refused,
    `${refused}; the server does not say where the relay is now: the API is down`,
  ]);
  const relay = await startRelay(port);
  await once(control, "welcome");
  control.close();
  await relay.stop();
});
