/** The agent of a TCP tunnel or a network, when its relay has another address after a restart. */
import { once } from "node:events";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RelayControlConnection } from "../../../../agent/relay-client/control-connection.ts";
import type { RelayAccess } from "../../../../protocol/schemas/networks.ts";
import {
  buildRelayAccess,
  sendWelcome,
  skipRetryDelays,
  startScriptedRelay,
} from "../../../harness/relay/scripted-relay.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

const STARTED_AT_MS = Date.UTC(2026, 10, 23);
const TEN_SECONDS_MS = 10_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: STARTED_AT_MS });
  skipRetryDelays();
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** An agent that is connected to a relay which has then stopped. */
async function loseRelay(getAccess: () => Promise<RelayAccess>) {
  const relay = await startScriptedRelay();
  const getFirst = vi.fn(getAccess).mockResolvedValueOnce(buildRelayAccess(relay.port));
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
  const moved = await startScriptedRelay();
  const { control, getAccess, port, waitForFailures } = await loseRelay(() =>
    Promise.resolve(buildRelayAccess(moved.port)),
  );
  getAccess.mockResolvedValueOnce(buildRelayAccess(port));
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
  const relay = await startScriptedRelay(sendWelcome, port);
  await once(control, "welcome");
  control.close();
  await relay.stop();
});
