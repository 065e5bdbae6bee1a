/** The ticket with which the agent of a TCP tunnel or a network uses the relay: when it is renewed, and when it is not. */
import { once } from "node:events";
import { afterEach, expect, test, vi } from "vitest";
import { RejectionError } from "../../../../agent/rejection-error.ts";
import { RelayControlConnection } from "../../../../agent/relay-client/control-connection.ts";
import { HOUR_MS, MINUTE_MS } from "../../../../shared/time.ts";
import { buildRelayAccess, startScriptedRelay } from "../../../harness/relay/scripted-relay.ts";

afterEach(() => void vi.restoreAllMocks());

test("a refusal ends the connection, however long the API's code for its reason is", async () => {
  const relay = await startScriptedRelay();
  const refusal = new RejectionError("long_".repeat(40), "the tunnel was deleted");
  const getAccess = vi.fn().mockRejectedValue(refusal);
  getAccess.mockResolvedValueOnce(buildRelayAccess(relay.port, 0));
  const control = new RelayControlConnection({ authorities: undefined, getAccess });
  control.start();
  expect(await once(control, "rejected")).toEqual([refusal]);
  await relay.stop();
});

test.each([-HOUR_MS, HOUR_MS])(
  "the next ticket is requested after half of the lifetime, also where the API's clock differs by %i ms",
  async (differenceMs) => {
    const relay = await startScriptedRelay();
    const access = buildRelayAccess(relay.port, 5 * MINUTE_MS, Date.now() + differenceMs);
    const getAccess = vi.fn().mockResolvedValue(access);
    const setTimer = vi.spyOn(globalThis, "setTimeout");
    const control = new RelayControlConnection({ authorities: undefined, getAccess });
    control.start();
    await once(control, "welcome");
    const delays = setTimer.mock.calls.map(([, ms = 0]) => ms);
    control.close();
    await relay.stop();
    expect(Math.max(...delays)).toBeGreaterThan(2 * MINUTE_MS);
    expect(Math.max(...delays)).toBeLessThanOrEqual(2.5 * MINUTE_MS);
    expect(getAccess).toHaveBeenCalledTimes(1);
  },
);
