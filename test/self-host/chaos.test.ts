/** A short experiment with a few faults. `npm run chaos` injects all of them, for as long as you like. */
import { expect, test } from "vitest";
import { runExperiment } from "../../chaos/experiment.ts";
import { GOOD_NETWORK } from "../../chaos/faults/fault-proxy.ts";
import type { PlannedFault } from "../../chaos/faults/fault-plan.ts";
import { WAIT_MAX_MS } from "../harness/timeouts.ts";

const PLAN: PlannedFault[] = [
  { atSeconds: 0.2, fault: { kind: "reset", path: "agents" } },
  {
    atSeconds: 0.4,
    fault: {
      kind: "network",
      path: "visitors",
      conditions: { ...GOOD_NETWORK, latencyMs: 10, jitterMs: 20, resetPerMille: 20 },
      seconds: 1,
    },
  },
  { atSeconds: 0.6, fault: { kind: "kill", process: "http-agent" } },
  { atSeconds: 1.5, fault: { kind: "kill", process: "workerd" } },
];

test("after resets, a slow network and kill -9, no change is lost, no POST is repeated and everything recovers", async () => {
  const { history, checks } = await runExperiment({
    seed: 1,
    seconds: 3,
    gapSeconds: 1,
    plan: PLAN,
    size: { visitors: 2, transfers: 1, webSockets: 1, tcpStreams: 0, writers: 1 },
    httpAgents: 2,
    hasTcpAgent: false,
    hasSmallDisks: false,
    database: "embedded",
    recoveryMaxMs: WAIT_MAX_MS,
    log: () => undefined,
  });
  expect(checks.filter(({ passed }) => !passed)).toEqual([]);
  expect(history.list("fault").filter(({ skipped }) => skipped !== undefined)).toEqual([]);
  expect(history.list("request").some(({ outcome }) => outcome === "complete")).toBe(true);
  expect(history.list("write").some(({ result }) => result === "acknowledged")).toBe(true);
});
