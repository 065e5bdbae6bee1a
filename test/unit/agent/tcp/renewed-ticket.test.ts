/** The agent of a TCP tunnel or a network, when the API does not renew its ticket for the relay. */
import { once } from "node:events";
import { expect, test, vi } from "vitest";
import { RejectionError } from "../../../../agent/rejection-error.ts";
import { RelayControlConnection } from "../../../../agent/relay-client/control-connection.ts";
import { buildRelayAccess, startScriptedRelay } from "../../../harness/relay/scripted-relay.ts";

test("a refusal ends the connection, however long the API's code for its reason is", async () => {
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
