import { runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { ERROR_HEADER } from "../../../../protocol/errors.ts";
import { FRAME, RESET } from "../../../../protocol/wire/frames.ts";
import {
  GRACE_PERIOD_MS,
  PARKED_REQUESTS_MAX,
} from "../../../../durable-objects/tunnel/agents/parked-requests.ts";
import { listCaptures, lastCapture } from "../../../harness/workerd/live-captures.ts";
import { publish } from "../../../harness/workerd/gated-tunnel.ts";
import { LiveTunnel, type TestAgent } from "../../../harness/workerd/live-tunnel.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

afterEach(() => void vi.useRealTimers());

async function lose(tunnel: LiveTunnel, agent: TestAgent): Promise<void> {
  agent.socket.close(1011, "lost");
  await agent.closed;
  await runInDurableObject(tunnel.stub, () => undefined);
}

describe("a visitor's request that arrives after the agent has disconnected", () => {
  test.each(["GET", "POST"])("with %s is answered when the agent reconnects", async (method) => {
    const tunnel = new LiveTunnel();
    await lose(tunnel, await tunnel.agent());
    const body = method === "POST" ? "order" : undefined;
    const response = tunnel.visit("/waits", { method, body });
    const agent = await tunnel.agent();
    const { stream, target } = await agent.nextRequest();
    expect(target).toBe("/waits");
    if (body) expect((await agent.nextData()).text).toBe(body);
    agent.respond(stream, 204);
    expect((await response).status).toBe(204);
  });

  test("is refused when an agent brings a gate, which the request was not checked against", async () => {
    const tunnel = new LiveTunnel();
    await lose(tunnel, await tunnel.agent());
    const response = tunnel.visit("/admin");
    await vi.waitUntil(async () => (await listCaptures(tunnel)).length === 1, WAIT_OPTIONS);
    await publish(tunnel, [{ kind: "deny", path_prefix: "/admin" }]);
    await tunnel.agent();
    const { status, headers } = await response;
    expect([status, headers.get(ERROR_HEADER)]).toEqual([503, "unavailable"]);
    expect(headers.get("retry-after")).toBe("1");
  });

  test("waits also if the object was restarted", async () => {
    const tunnel = new LiveTunnel();
    await lose(tunnel, await tunnel.agent());
    await tunnel.sleep();
    const response = tunnel.visit("/");
    const agent = await tunnel.agent();
    agent.respond((await agent.nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
  });

  test("waits after a restart of the server, however long that took", async () => {
    const tunnel = new LiveTunnel();
    await tunnel.agent();
    await tunnel.stub.drain();
    await tunnel.sleep();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 6 * GRACE_PERIOD_MS });
    const response = tunnel.visit("/");
    const agent = await tunnel.agent();
    agent.respond((await agent.nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
  });

  test("waits no longer than the grace period, and the response then says when to retry", async () => {
    const tunnel = new LiveTunnel();
    await lose(tunnel, await tunnel.agent());
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const response = tunnel.visit("/");
    await vi.waitUntil(() => vi.getTimerCount() > 0, WAIT_OPTIONS);
    await runInDurableObject(tunnel.stub, () => void vi.advanceTimersByTime(GRACE_PERIOD_MS));
    const { status, headers } = await response;
    expect([status, headers.get("underpass-error")]).toEqual([502, "agent_offline"]);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  });

  test("is not forwarded if the visitor has disconnected", async () => {
    const tunnel = new LiveTunnel();
    await lose(tunnel, await tunnel.agent());
    const leaving = new AbortController();
    const response = tunnel.visit("/left", { signal: leaving.signal }).catch(() => undefined);
    await vi.waitUntil(async () => (await listCaptures(tunnel)).length === 1, WAIT_OPTIONS);
    leaving.abort();
    await response;
    const agent = await tunnel.agent();
    await vi.waitUntil(async () => (await lastCapture(tunnel)).state === "aborted", WAIT_OPTIONS);
    expect(agent.pendingFrames).toBe(0);
  });

  test("is refused at once if too many are parked", async () => {
    const tunnel = new LiveTunnel();
    await lose(tunnel, await tunnel.agent());
    let refused = 0;
    // One source gets half.
    const atMost = PARKED_REQUESTS_MAX / 2;
    const visits = Array.from({ length: atMost + 3 }, async () => {
      const response = await tunnel.visit("/");
      if (response.status === 502) refused += 1;
      return response.status;
    });
    await vi.waitUntil(() => refused === 3, WAIT_OPTIONS);
    const agent = await tunnel.agent();
    for (let i = 0; i < atMost; i += 1) agent.respond((await agent.nextRequest()).stream, 204);
    const statuses = await Promise.all(visits);
    expect(statuses.filter((status) => status === 204)).toHaveLength(atMost);
  });
});

describe("a visitor's request is refused at once", () => {
  test("if no agent has ever connected", async () => {
    expect((await new LiveTunnel().visit("/")).status).toBe(502);
  });

  test("after an agent that announced that it goes away", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    agent.send((writer) => writer.writeText(FRAME.goingAway, 0, 0, "stopped"));
    await lose(tunnel, agent);
    expect((await tunnel.visit("/")).status).toBe(502);
    await tunnel.sleep();
    expect((await tunnel.visit("/")).status).toBe(502);
  });

  test("while the only agent goes away, which still answers earlier requests", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const earlier = tunnel.visit("/earlier");
    const { stream } = await agent.nextRequest();
    agent.send((writer) => writer.writeText(FRAME.goingAway, 0, 0, "stopped"));
    const later = tunnel.visit("/later");
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const { stream: refused } = await agent.nextRequest();
      agent.send((w) => w.writeCodeAndText(FRAME.reset, refused, RESET.refused, "stopping"));
    }
    expect((await later).status).toBe(502);
    agent.respond(stream, 204);
    expect((await earlier).status).toBe(204);
  });

  test("after a restart of the server, if the agent had been lost for longer than the grace period", async () => {
    const tunnel = new LiveTunnel();
    await lose(tunnel, await tunnel.agent());
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + GRACE_PERIOD_MS });
    await tunnel.stub.drain();
    await tunnel.sleep();
    expect((await tunnel.visit("/")).status).toBe(502);
  });

  test("after an agent whose token was revoked", async () => {
    const tunnel = new LiveTunnel();
    await tunnel.agent();
    await tunnel.stub.revokeToken("token-a");
    expect((await tunnel.visit("/")).status).toBe(502);
  });
});
