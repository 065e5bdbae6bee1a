/** What an agent learns about the gates and the maintenance of its tunnel, and about the visits that they refuse. */
import { describe, expect, test, vi } from "vitest";
import {
  FRAME,
  parseJsonPayload,
  STATUS_CAPABILITY,
  type StatusUpdate,
} from "../../../../protocol/wire/frames.ts";
import type { PolicyAction } from "../../../../protocol/schemas/access/policies.ts";
import {
  AUTH,
  newVersion,
  publish,
  runVisit,
  setMaintenance,
} from "../../../harness/workerd/gated-tunnel.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { HELLO, LiveTunnel, type TestAgent } from "../../../harness/workerd/live-tunnel.ts";

const READER = { ...HELLO, capabilities: [STATUS_CAPABILITY] };
const TOKEN: PolicyAction = { kind: "jwt_validation" };
const DENY: PolicyAction = { kind: "deny", path_prefix: "/admin" };

const nextStatus = async (agent: TestAgent): Promise<StatusUpdate> =>
  parseJsonPayload((await agent.next(FRAME.status)).payload) as StatusUpdate;

test("the welcome tells when the tunnel expires: as its row says, also when an upgrade has postponed it", async () => {
  const tunnel = new LiveTunnel();
  expect((await tunnel.agent()).welcome).not.toHaveProperty("expiresAt");
  const soonMs = Date.now() + 60_000;
  const expiresAt = (atMs: number) => ({ expiresAt: new Date(atMs).toISOString() });
  expect((await tunnel.agent({ endsAtMs: soonMs })).welcome).toMatchObject(expiresAt(soonMs));
  await tunnel.sleep();
  const laterMs = soonMs + 3600_000;
  expect((await tunnel.agent({ endsAtMs: laterMs })).welcome).toMatchObject(expiresAt(laterMs));
  expect((await tunnel.agent()).welcome).not.toHaveProperty("expiresAt");
});

describe("the gates", () => {
  test("are in the welcome, by name and without secrets", async () => {
    const tunnel = new LiveTunnel();
    await publish(tunnel, [TOKEN, DENY], AUTH);
    expect((await tunnel.agent()).welcome?.gates).toEqual(["password", "token", "policy"]);
    await tunnel.stub.publishAccessSettings({
      ...{ version: newVersion(), realm: "shop", basicAuth: null, policy: null },
      identityGate: { emails: [], domains: [], tunnelId: tunnel.id },
      allowedCidrs: ["192.0.2.0/24"],
    });
    expect((await tunnel.agent()).welcome?.gates).toEqual(["sign_in", "addresses"]);
    expect((await new LiveTunnel().agent()).welcome?.gates).toEqual([]);
  });

  test("are sent when they change, also after hibernation", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent({}, READER);
    await publish(tunnel, [], AUTH);
    expect(await nextStatus(agent)).toEqual({ gates: ["password"], maintenance: false });
    await tunnel.sleep();
    await publish(tunnel, [DENY]);
    expect(await nextStatus(agent)).toEqual({ gates: ["policy"], maintenance: false });
    await publish(tunnel, []);
    expect(await nextStatus(agent)).toEqual({ gates: [], maintenance: false });
  });

  test("are not sent to an agent that does not read them", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [DENY]);
    // The request is the first frame after the welcome.
    expect((await runVisit(tunnel, agent, "/")).code).toBe("passed");
  });
});

describe("maintenance", () => {
  test("is in the welcome while it is on", async () => {
    const tunnel = new LiveTunnel();
    await setMaintenance(tunnel, true);
    expect((await tunnel.agent()).welcome).toMatchObject({ maintenance: true });
    await setMaintenance(tunnel, false);
    expect((await tunnel.agent()).welcome).not.toHaveProperty("maintenance");
  });

  test("is sent when it begins and ends, also after hibernation", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent({}, READER);
    await setMaintenance(tunnel, true);
    expect(await nextStatus(agent)).toEqual({ gates: [], maintenance: true });
    await tunnel.sleep();
    await setMaintenance(tunnel, false);
    expect(await nextStatus(agent)).toEqual({ gates: [], maintenance: false });
  });
});

describe("refused visits", () => {
  test("of an earlier agent are not reported to the next one", async () => {
    const tunnel = new LiveTunnel();
    const first = await tunnel.agent({}, READER);
    await publish(tunnel, [DENY]);
    await nextStatus(first);
    for (let visits = 0; visits < 5; visits += 1) await tunnel.visit("/admin");
    first.socket.close(1000);
    await vi.waitUntil(async () => !(await tunnel.stub.sendReport())?.agentConnected, WAIT_OPTIONS);
    const second = await tunnel.agent({}, READER);
    await tunnel.visit("/admin");
    expect(await nextStatus(second)).toEqual({ refused: 1 });
  });

  test("are counted, in fewer messages than there are visits", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent({}, READER);
    await publish(tunnel, [DENY]);
    await nextStatus(agent);
    const visits = Array.from({ length: 50 }, () => tunnel.visit("/admin"));
    for (const response of await Promise.all(visits)) expect(response.status).toBe(403);
    await setMaintenance(tunnel, true);
    expect((await tunnel.visit("/")).status).toBe(503);
    const counts: number[] = [];
    while (counts.reduce((sum, count) => sum + count, 0) < 51)
      counts.push((await nextStatus(agent)).refused ?? 0);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(51);
    expect(counts.length).toBeLessThan(10);
  });
});
