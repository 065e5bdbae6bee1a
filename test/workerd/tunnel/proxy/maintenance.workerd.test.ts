import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { describe, expect, test, vi } from "vitest";
import { AUTH, outcomeOf, publish, setMaintenance } from "../../../harness/workerd/gated-tunnel.ts";
import { LiveTunnel } from "../../../harness/workerd/live-tunnel.ts";
import { rows } from "../../../harness/workerd/objects.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

describe("maintenance", () => {
  test("closes the tunnel to everybody, before any other gate, with its owner's words", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [{ kind: "deny", path_prefix: "/admin" }], AUTH);
    await setMaintenance(tunnel, true, "back at <noon>");
    for (const path of ["/", "/admin"]) {
      const { code, answer } = await outcomeOf(tunnel, agent, path);
      expect([code, answer.status, await answer.text()]).toEqual([
        "maintenance",
        503,
        "back at <noon>",
      ]);
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    }
    await tunnel.sleep();
    expect((await outcomeOf(tunnel, agent, "/")).code).toBe("maintenance");
    await setMaintenance(tunnel, false);
    expect((await outcomeOf(tunnel, agent, "/")).code).toBe("unauthorized");
  });

  test("ends when the last agent goes, awake or asleep", async () => {
    for (const isAsleep of [false, true]) {
      const tunnel = new LiveTunnel();
      const agent = await tunnel.agent();
      await setMaintenance(tunnel, true);
      if (isAsleep) await tunnel.sleep();
      agent.socket.close(1000);
      await vi.waitUntil(async () => {
        const report = await tunnel.stub.sendReport();
        return report?.agentConnected === false && !report.maintenance;
      }, WAIT_OPTIONS);
      const next = await tunnel.agent();
      expect((await outcomeOf(tunnel, next, "/")).code).toBe("passed");
    }
  });

  test("does not end when another connection of the same agent takes over", async () => {
    const tunnel = new LiveTunnel();
    const before = await tunnel.agent();
    await setMaintenance(tunnel, true);
    const agent = await tunnel.agent();
    await before.closed;
    expect((await outcomeOf(tunnel, agent, "/")).code).toBe("maintenance");
  });

  test("waits for an agent to come, and stays until it went", async () => {
    const tunnel = new LiveTunnel();
    await setMaintenance(tunnel, true);
    expect((await tunnel.visit("/")).status).toBe(503);
    const agent = await tunnel.agent();
    expect((await outcomeOf(tunnel, agent, "/")).code).toBe("maintenance");
  });

  test("is not brought back by an older word of it", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const version = await setMaintenance(tunnel, true);
    const late = { version, isOn: true, message: null };
    await setMaintenance(tunnel, false);
    await tunnel.stub.setMaintenance(tunnel.id, late);
    expect((await outcomeOf(tunnel, agent, "/")).code).toBe("passed");
  });

  test("is told to the row, both ways", async () => {
    const tunnel = new LiveTunnel();
    await tunnel.agent();
    const newest = () => rows.reports.filter(({ tunnelId }) => tunnelId === tunnel.id).at(-1);
    await setMaintenance(tunnel, true);
    await vi.waitUntil(() => newest()?.maintenance === true, WAIT_OPTIONS);
    await setMaintenance(tunnel, false);
    await vi.waitUntil(() => newest()?.maintenance === false, WAIT_OPTIONS);
    await runDurableObjectAlarm(tunnel.stub);
  });

  test("goes on after a restart of the object, which is none of its owner's doing", async () => {
    const tunnel = new LiveTunnel();
    await tunnel.agent();
    await setMaintenance(tunnel, true);
    await evictDurableObject(tunnel.stub, { webSockets: "close" });
    const agent = await tunnel.agent();
    expect((await outcomeOf(tunnel, agent, "/")).code).toBe("maintenance");
  });
});
