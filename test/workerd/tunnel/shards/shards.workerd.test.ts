import { expect, test, vi } from "vitest";
import { CLOSE } from "../../../../protocol/wire/close-codes.ts";
import { FRAME, parseJsonPayload } from "../../../../protocol/wire/frames.ts";
import { ERROR_HEADER } from "../../../../protocol/errors.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import {
  newVersion,
  publish,
  runVisit,
  setMaintenance,
} from "../../../harness/workerd/gated-tunnel.ts";
import { HELLO, LiveTunnel } from "../../../harness/workerd/live-tunnel.ts";
import { rows } from "../../../harness/workerd/objects.ts";
import { ShardedTunnel } from "../../../harness/workerd/sharded-tunnel.ts";

const DENY = { kind: "deny", path_prefix: "/admin" } as const;
const ALL_PASSED = ["passed", "passed", "passed", "passed"];

test("settings are in force at every object when they are published", async () => {
  const tunnel = await ShardedTunnel.open();
  await publish(tunnel.first, [DENY]);
  expect(await tunnel.visitEach("/admin")).toEqual(Array(4).fill("forbidden"));
  expect(await tunnel.visitEach("/")).toEqual(ALL_PASSED);
});

test("an object that joins has the settings of the tunnel before it serves a visitor", async () => {
  const tunnel = new ShardedTunnel(4);
  tunnel.agents = [await tunnel.first.agent()];
  await publish(tunnel.first, [DENY]);
  await setMaintenance(tunnel.first, true);
  await tunnel.setCount(4);
  for (const object of tunnel.objects.slice(1)) tunnel.agents.push(await object.agent());
  expect(await tunnel.visitEach("/")).toEqual(Array(4).fill("maintenance"));
  await setMaintenance(tunnel.first, false);
  expect(await tunnel.visitEach("/admin")).toEqual(Array(4).fill("forbidden"));
});

test("an object without settings accepts no agent, and passes visitors to the first", async () => {
  const tunnel = new ShardedTunnel(2);
  const [first, second] = tunnel.objects as [LiveTunnel, LiveTunnel];
  const agent = await first.agent();
  await publish(first, [DENY]);
  await expect(second.agent()).rejects.toMatchObject({ code: "unavailable" });
  expect(await runVisit(second, agent, "/admin")).toMatchObject({ code: "forbidden" });
  expect(await runVisit(second, agent, "/")).toMatchObject({ code: "passed" });
});

test("a WebSocket passes to the first object too", async () => {
  const tunnel = new ShardedTunnel(2);
  const agent = await tunnel.first.agent();
  const { socket, stream } = await tunnel.objects[1]!.visitorSocket(agent);
  agent.send((writer) => writer.writeText(FRAME.text, 0, stream, "hello"));
  expect(await socket.nextMessage()).toBe("hello");
});

test("visitors of an object whose agent is lost are served through the first", async () => {
  const tunnel = await ShardedTunnel.open();
  tunnel.agents[2]!.socket.close();
  await tunnel.agents[2]!.closed;
  const outcome = await runVisit(tunnel.objects[2]!, tunnel.agents[0]!, "/path");
  expect(outcome).toMatchObject({ code: "passed", received: { target: "/path" } });
});

test("visitors are served through the first object again when the tunnel has fewer", async () => {
  const tunnel = await ShardedTunnel.open();
  await publish(tunnel.first, [DENY]);
  await tunnel.setCount(2);
  const outcome = await runVisit(tunnel.objects[3]!, tunnel.agents[0]!, "/");
  expect(outcome.code).toBe("passed");
  expect((await runVisit(tunnel.objects[3]!, tunnel.agents[0]!, "/admin")).code).toBe("forbidden");
});

test("a limit for all visitors together is divided, and exceeded by less than the number of objects", async () => {
  const tunnel = await ShardedTunnel.open();
  await publish(tunnel.first, [
    { kind: "rate_limit", requests_per_minute: 10, per_client_ip: false },
  ]);
  const codes: (string | null)[] = [];
  for (let round = 0; round < 5; round++) codes.push(...(await tunnel.visitEach()));
  const passed = codes.filter((code) => code === "passed").length;
  expect(passed).toBeGreaterThanOrEqual(10);
  expect(passed).toBeLessThanOrEqual(13);
});

test("a limit for each address is not divided: its requests arrive at one object", async () => {
  const tunnel = await ShardedTunnel.open();
  await publish(tunnel.first, [
    { kind: "rate_limit", requests_per_minute: 3, per_client_ip: true },
  ]);
  const codes: (string | null)[] = [];
  for (let visit = 0; visit < 5; visit++) codes.push((await tunnel.visit(1)).code);
  expect(codes).toEqual(["passed", "passed", "passed", "rate_limited", "rate_limited"]);
});

test("the row has the sum of what all objects counted, however often each reports", async () => {
  const tunnel = await ShardedTunnel.open();
  await publish(tunnel.first, [DENY]);
  for (let round = 0; round < 3; round++) await tunnel.visitEach();
  await tunnel.visit(3, "/admin");
  const isComplete = ({ requests, counters }: (typeof rows.reports)[number]) =>
    requests === 12 && counters["refusals:forbidden"] === 1;
  const report = await tunnel.waitForReport(isComplete);
  expect(report.counters).toMatchObject({ "requests:2xx": 12, "requests:4xx": 1 });
  expect(report.bytesOut).toBe(12 * "passed".length);

  for (const { stub } of tunnel.objects) await stub.sendReport();
  const repeated = (await tunnel.first.stub.sendReport())!;
  expect(repeated.requests).toBe(12);
  expect(repeated.bytesOut).toBe(12 * "passed".length);

  const reports = rows.reports.filter(({ tunnelId }) => tunnelId === tunnel.first.id);
  const charged = reports.flatMap(({ spending }) => spending).map(({ requests }) => requests);
  expect(Math.max(...charged)).toBe(12);
});

test("maintenance is in force at every object, and ends at all with the first one's agent", async () => {
  const tunnel = await ShardedTunnel.open();
  await setMaintenance(tunnel.first, true, "Back soon.");
  expect(await tunnel.visitEach()).toEqual(Array(4).fill("maintenance"));

  tunnel.agents[1]!.socket.close();
  await tunnel.agents[1]!.closed;
  tunnel.agents[1] = await tunnel.objects[1]!.agent();
  expect((await tunnel.visit(1)).code).toBe("maintenance");

  tunnel.agents[0]!.socket.close();
  await tunnel.agents[0]!.closed;
  await tunnel.waitForReport(({ agentConnected }) => !agentConnected);
  tunnel.agents[0] = await tunnel.first.agent();
  await vi.waitUntil(async () => (await tunnel.visit(2)).code === "passed", WAIT_OPTIONS);
  expect(await tunnel.visitEach()).toEqual(ALL_PASSED);
});

test("stopping the tunnel disconnects the agents of all objects, and no object accepts one", async () => {
  const tunnel = await ShardedTunnel.open();
  await tunnel.first.stub.setStopState({ version: newVersion(), isStopped: true });
  for (const agent of tunnel.agents) {
    expect(await agent.closed).toMatchObject({ code: CLOSE.tunnel_stopped });
  }
  for (const object of tunnel.objects) {
    await expect(object.agent()).rejects.toMatchObject({ code: "conflict" });
  }
});

test("a revoked token ends the connections to all objects", async () => {
  const tunnel = await ShardedTunnel.open();
  await tunnel.first.stub.revokeToken("token-a");
  for (const agent of tunnel.agents) {
    expect(await agent.closed).toMatchObject({ code: CLOSE.unauthorized });
  }
});

test("a member who ends a connection ends those to all objects", async () => {
  const tunnel = await ShardedTunnel.open();
  await tunnel.first.stub.disconnectAgent(tunnel.agents[0]!.welcome!.agentId);
  for (const agent of tunnel.agents) {
    expect(await agent.closed).toMatchObject({ code: CLOSE.connection_ended });
  }
});

test("a deleted tunnel is gone at every object, with all that was counted", async () => {
  const tunnel = await ShardedTunnel.open();
  await tunnel.visitEach();
  await tunnel.first.stub.retire();
  for (const agent of tunnel.agents) {
    expect(await agent.closed).toMatchObject({ code: CLOSE.tunnel_deleted });
  }
  for (const object of tunnel.objects) {
    const response = await object.visit("/");
    expect(response.headers.get(ERROR_HEADER)).toBe("tunnel_not_found");
  }
  await tunnel.waitForReport(({ counters }) => counters["requests:2xx"] === 4);
});

test("the organization sees the agent of the first object alone", async () => {
  const tunnel = await ShardedTunnel.open();
  const { agentId } = tunnel.agents[0]!.welcome!;
  expect((await tunnel.first.stub.getPresence())?.agents).toMatchObject([{ agentId }]);
});

test("an agent learns how many objects there are from its welcome, and when that changes", async () => {
  const tunnel = new ShardedTunnel(4);
  const agent = await tunnel.first.agent({}, { ...HELLO, capabilities: ["status"] });
  expect(agent.welcome).not.toHaveProperty("shards");
  await tunnel.setCount(4);
  const { payload } = await agent.next(FRAME.status);
  expect(parseJsonPayload(payload)).toEqual({ shards: 4 });
  const newer = await tunnel.first.agent();
  expect(newer.welcome).toMatchObject({ shards: 4 });
});

test("an object knows its number after an eviction", async () => {
  const tunnel = await ShardedTunnel.open(2);
  await publish(tunnel.first, [DENY]);
  await tunnel.objects[1]!.sleep();
  expect((await tunnel.visit(1, "/admin")).code).toBe("forbidden");
  expect((await tunnel.visit(1)).code).toBe("passed");
  const report = await tunnel.waitForReport(({ requests }) => requests === 1);
  expect(report.tunnelId).toBe(tunnel.first.id);
});
