import { runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, expect, test, vi } from "vitest";
import { LOSS_REPORT_MAX_MS } from "../../../../durable-objects/tunnel/metrics/metrics-reporter.ts";
import { REPORT_PROMPT_MS } from "../../../../durable-objects/tunnel/metrics/report-pace.ts";
import type { TunnelReport } from "../../../../durable-objects/rpc.ts";
import { LiveTunnel, type TestAgent } from "../../../harness/workerd/live-tunnel.ts";
import { rows } from "../../../harness/workerd/objects.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

afterEach(() => void vi.useRealTimers());

const CONNECTED = { agentConnected: true, requests: 0 };
const CONNECTED_AFTER_VISIT = { agentConnected: true, requests: 1 };
const LOST_AFTER_VISIT = { agentConnected: false, requests: 1 };

test("a tunnel that a crash has interrupted reports nothing until its agent is back", async () => {
  const tunnel = await createInterrupted();
  const dueAtMs = Date.now() + REPORT_PROMPT_MS;
  await tunnel.runAlarmAt(dueAtMs);
  expect(listReports(tunnel)).toMatchObject([CONNECTED]);
  vi.useRealTimers();
  await tunnel.agent();
  await vi.waitUntil(() => listReports(tunnel).length === 2, WAIT_OPTIONS);
  expect(listReports(tunnel)).toMatchObject([CONNECTED, CONNECTED_AFTER_VISIT]);
});

test("a tunnel whose agent does not return after a crash reports that, once", async () => {
  const tunnel = await createInterrupted();
  const dueAtMs = Date.now() + REPORT_PROMPT_MS;
  await tunnel.runAlarmAt(dueAtMs);
  // The new instance is evicted while it waits.
  await tunnel.sleep();
  await tunnel.runAlarmAt(dueAtMs + LOSS_REPORT_MAX_MS);
  expect(listReports(tunnel)).toMatchObject([CONNECTED, LOST_AFTER_VISIT]);
});

/** A tunnel with an agent and a visit, which is not reported yet. Its process has crashed. */
async function createInterrupted(): Promise<LiveTunnel> {
  const tunnel = new LiveTunnel();
  const agent = await tunnel.agent();
  await vi.waitUntil(() => listReports(tunnel).length === 1, WAIT_OPTIONS);
  await visit(tunnel, agent);
  // Saves the counters.
  await runDurableObjectAlarm(tunnel.stub);
  await tunnel.crash();
  return tunnel;
}

async function visit(tunnel: LiveTunnel, agent: TestAgent): Promise<void> {
  const response = tunnel.visit("/");
  agent.respond((await agent.nextRequest()).stream, 200, [], "body");
  await (await response).text();
}

function listReports({ id }: LiveTunnel): TunnelReport[] {
  return rows.reports.filter(({ tunnelId }) => tunnelId === id);
}
