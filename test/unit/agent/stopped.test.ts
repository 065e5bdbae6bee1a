/** The agent when its tunnel is stopped, deleted or has expired. */
import { once } from "node:events";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { CLOSE, type CloseName } from "../../../protocol/wire/close-codes.ts";
import { STOPPED_RETRY_MAX_MS, STOPPED_RETRY_MIN_MS } from "../../../agent/back-off.ts";
import { startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { startScriptedTunnel } from "../../harness/tunnel/scripted-tunnel.ts";

let origin: RawOrigin;
beforeAll(async () => void (origin = await startRawOrigin()));
afterAll(() => origin.stop());
afterEach(() => void vi.restoreAllMocks());

/**
 * The attempts to reconnect that the agent schedules, for the test to run without the wait. Fake timers would also
 * contain the timers of closing sockets, and `vi.waitUntil` would move their clock.
 */
function interceptRetries(): (() => void)[] {
  const retries: (() => void)[] = [];
  const { setTimeout } = globalThis;
  vi.spyOn(globalThis, "setTimeout").mockImplementation((run: () => void, ms = 0, ...args) => {
    if (ms < STOPPED_RETRY_MIN_MS || ms > STOPPED_RETRY_MAX_MS) return setTimeout(run, ms, ...args);
    retries.push(run);
    return setTimeout(() => undefined);
  });
  return retries;
}

test("an agent whose tunnel is stopped reports it once, checks at an interval, and serves when it is started", async () => {
  await using tunnel = await startScriptedTunnel(origin.port);
  const { agent } = tunnel;
  const reports: string[] = [];
  agent.on("stopped", (explanation) => reports.push(explanation));
  agent.on("disconnected", (reason) => reports.push(reason));
  agent.on("retrying", (reason) => reports.push(reason));
  agent.start();
  const retries = interceptRetries();
  for (let attempts = 0; attempts < 3; attempts += 1) {
    await tunnel.refuse("tunnel_stopped", "the tunnel was stopped");
    const retry = await vi.waitUntil(() => retries.shift(), WAIT_OPTIONS);
    retry();
  }
  const ready = once(agent, "ready");
  await tunnel.connection();
  await ready;
  expect(reports).toEqual(["the tunnel was stopped"]);
});

test.each(["tunnel_deleted", "tunnel_expired"] as CloseName[])(
  "an agent does not reconnect after %s, and reports why",
  async (name) => {
    await using tunnel = await startScriptedTunnel(origin.port);
    const rejected = once(tunnel.agent, "rejected");
    tunnel.agent.start();
    const connection = await tunnel.connection();
    connection.socket.close(CLOSE[name], `${name}: because of that`);
    expect(await rejected).toMatchObject([{ reason: name, message: "because of that" }]);
  },
);
