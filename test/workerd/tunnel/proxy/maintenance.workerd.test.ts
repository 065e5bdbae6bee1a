import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { describe, expect, test, vi } from "vitest";
import { getRefusalMessage } from "../../../../access/refusal.ts";
import { AUTH, runVisit, publish, setMaintenance } from "../../../harness/workerd/gated-tunnel.ts";
import { LiveTunnel } from "../../../harness/workerd/live-tunnel.ts";
import { rows } from "../../../harness/workerd/objects.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

describe("maintenance", () => {
  test("refuses all requests, before any gate, with the owner's message", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [{ kind: "deny", path_prefix: "/admin" }], AUTH);
    await setMaintenance(tunnel, true, "back at <noon>");
    for (const path of ["/", "/admin"]) {
      const { code, response } = await runVisit(tunnel, agent, path);
      expect([code, response.status, getRefusalMessage(response)]).toEqual([
        "maintenance",
        503,
        "back at <noon>",
      ]);
      expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
    }
    await tunnel.sleep();
    expect((await runVisit(tunnel, agent, "/")).code).toBe("maintenance");
    await setMaintenance(tunnel, false);
    expect((await runVisit(tunnel, agent, "/")).code).toBe("unauthorized");
  });

  test("ends when the last agent disconnects, also during hibernation", async () => {
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
      expect((await runVisit(tunnel, next, "/")).code).toBe("passed");
    }
  });

  test("does not end when the same agent reconnects", async () => {
    const tunnel = new LiveTunnel();
    const before = await tunnel.agent();
    await setMaintenance(tunnel, true);
    const agent = await tunnel.agent();
    await before.closed;
    expect((await runVisit(tunnel, agent, "/")).code).toBe("maintenance");
  });

  test("can begin before an agent connects, and ends when it disconnects", async () => {
    const tunnel = new LiveTunnel();
    await setMaintenance(tunnel, true);
    expect((await tunnel.visit("/")).status).toBe(503);
    const agent = await tunnel.agent();
    expect((await runVisit(tunnel, agent, "/")).code).toBe("maintenance");
  });

  test("is not restored by an older version", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const version = await setMaintenance(tunnel, true);
    const olderSettings = { version, isOn: true, message: null };
    await setMaintenance(tunnel, false);
    await tunnel.stub.setMaintenance(tunnel.id, olderSettings);
    expect((await runVisit(tunnel, agent, "/")).code).toBe("passed");
  });

  test("is reported to the row when it begins and ends", async () => {
    const tunnel = new LiveTunnel();
    await tunnel.agent();
    const newest = () => rows.reports.filter(({ tunnelId }) => tunnelId === tunnel.id).at(-1);
    await setMaintenance(tunnel, true);
    await vi.waitUntil(() => newest()?.maintenance === true, WAIT_OPTIONS);
    await setMaintenance(tunnel, false);
    await vi.waitUntil(() => newest()?.maintenance === false, WAIT_OPTIONS);
    await runDurableObjectAlarm(tunnel.stub);
  });

  test("continues after a restart of the object, also if an agent's first attempt to return fails", async () => {
    const tunnel = new LiveTunnel();
    await tunnel.agent();
    await setMaintenance(tunnel, true);
    await evictDurableObject(tunnel.stub, { webSockets: "close" });
    const failing = await tunnel.connect();
    failing.socket.close(1000);
    await failing.closed;
    const agent = await tunnel.agent();
    expect((await runVisit(tunnel, agent, "/")).code).toBe("maintenance");
  });
});
