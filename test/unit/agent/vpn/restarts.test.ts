/** WireGuard sessions survive restarts of the agent, which stores no state; the newest agent takes over. */
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startServedNetwork,
  type ServedNetwork,
} from "../../../harness/networks/served-network.ts";
import { fastClock, speedUp } from "../../../harness/preloads/fast-clock.ts";
import { ping } from "../../../harness/networks/traffic.ts";

let served: ServedNetwork;

beforeAll(async () => {
  served = await startServedNetwork(fastClock(10));
});
afterAll(async () => {
  await served?.[Symbol.asyncDispose]();
});

test.each(["SIGTERM", "SIGKILL"] as const)(
  "an agent that is stopped by %s and started again continues the session",
  async (signal) => {
    await using first = await served.vpn("--json");
    await first.event("path");
    await using device = await served.connectDevice();
    first.child.kill(signal);
    await first.exit;
    await using second = await served.vpn("--json");
    await second.event("path");
    await ping(device);
    expect([device.handshakes(), served.server.handshakes(device.publicKey)]).toEqual([1, 1]);
    // The new agent has received no handshake yet; the next one identifies the device.
    await device.handshake(device.endpoint(), served.server.publicKey);
    expect(await second.event("device")).toMatchObject({ name: "laptop" });
  },
);

test("an agent that a newer one replaces reports it, and ends with exit code 1", async () => {
  await using first = await served.vpn("--json");
  await first.event("path");
  await using device = await served.connectDevice();
  await using second = await served.vpn("--json");
  await second.event("path");
  expect(await first.event("rejected")).toMatchObject({ reason: "replaced" });
  expect(await first.exit).toBe(1);
  await ping(device);
  expect(device.handshakes()).toBe(1);
});

test("an agent waits for an API and a relay that are not yet up", async () => {
  const { relay, api } = served;
  const { relayAccess } = api;
  api.relayAccess = () => Promise.reject(new Error("not yet"));
  await relay.stop();
  await using agent = await served.vpn("--json");
  expect(await agent.event("retrying")).toMatchObject({ reason: "not yet" });
  speedUp(agent.child);
  api.relayAccess = relayAccess;
  await relay.start();
  await agent.event("ready");
  expect(agent.child.exitCode).toBe(null);
});
