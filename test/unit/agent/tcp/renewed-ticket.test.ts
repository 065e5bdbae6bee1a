/** The agent of a TCP tunnel or a network, when the API does not renew its ticket for the relay. */
import { once } from "node:events";
import { afterEach, expect, test, vi } from "vitest";
import { RejectionError } from "../../../../agent/rejection-error.ts";
import { RelayControlConnection } from "../../../../agent/relay-client/control-connection.ts";
import {
  buildRelayAccess,
  skipRetryDelays,
  startScriptedRelay,
} from "../../../harness/relay/scripted-relay.ts";

afterEach(() => void vi.restoreAllMocks());

test("a refusal ends the connection, however long the API's code for its reason is", async () => {
  skipRetryDelays();
  const relay = await startScriptedRelay();
  const refusal = new RejectionError("long_".repeat(40), "the tunnel was deleted");
  const getAccess = vi.fn().mockRejectedValue(refusal);
  const expires_at = new Date(Date.now() + 100).toISOString();
  getAccess.mockResolvedValueOnce({ ...buildRelayAccess(relay.port), expires_at });
  const control = new RelayControlConnection({ authorities: undefined, getAccess });
  control.start();
  expect(await once(control, "rejected")).toEqual([refusal]);
  await relay.stop();
});

test.each([-600_000, -300_001, 0, 600_000])(
  "a ticket is renewed after half of its five minutes, with a clock that is ahead by %i ms",
  async (aheadMs) => {
    const relay = await startScriptedRelay();
    const access = buildRelayAccess(relay.port);
    const expires_at = new Date(Date.parse(access.expires_at) - aheadMs).toISOString();
    const getAccess = vi.fn().mockResolvedValue({ ...access, expires_at });
    const control = new RelayControlConnection({ authorities: undefined, getAccess });
    const setTimer = vi.spyOn(globalThis, "setTimeout");
    control.start();
    await once(control, "welcome");
    const [, renewalMs] = setTimer.mock.lastCall!;
    expect(renewalMs).toBeCloseTo(150_000, -5);
    control.close();
    await relay.stop();
  },
);
