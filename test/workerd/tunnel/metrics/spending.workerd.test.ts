import { runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { CLOSE } from "../../../../protocol/wire/close-codes.ts";
import { FLAG, FRAME } from "../../../../protocol/wire/frames.ts";
import { LEFT_MS, LiveTunnel, type TestAgent } from "../../../harness/workerd/live-tunnel.ts";
import { rows } from "../../../harness/workerd/objects.ts";

afterEach(() => void vi.useRealTimers());

async function visit(tunnel: LiveTunnel, agent: TestAgent, bytes: number): Promise<void> {
  const answer = tunnel.visit("/");
  agent.respond((await agent.nextRequest()).stream, 200, [], "x".repeat(bytes));
  await (await answer).text();
}
const getSpending = async (tunnel: LiveTunnel) => (await tunnel.stub.sendReport())?.spending;
const month = (nowMs = Date.now()) => new Date(nowMs).toISOString().slice(0, 7);

describe("a tunnel's traffic is charged", () => {
  test("to the token of the serving agent, in monthly totals that are reported once", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent({ tokenNonce: "token-a" });
    await visit(tunnel, agent, 100);
    const charged = { tokenNonce: "token-a", month: month() };
    expect(await getSpending(tunnel)).toEqual([{ ...charged, bytes: 100, requests: 1 }]);
    expect(await getSpending(tunnel)).toEqual([]);
    await visit(tunnel, agent, 50);
    expect(await getSpending(tunnel)).toEqual([{ ...charged, bytes: 150, requests: 2 }]);
  });

  test("to each of several tokens for its own traffic, also when one is used again", async () => {
    const tunnel = new LiveTunnel();
    for (const [tokenNonce, bytes] of [
      ["a", 10],
      ["b", 200],
      ["a", 3],
    ] as const) {
      const agent = await tunnel.agent({ tokenNonce });
      await visit(tunnel, agent, bytes);
      agent.send((writer) => writer.writeText(FRAME.goingAway, 0, 0, "bye"));
      agent.socket.close(1000, "bye");
      await agent.closed;
    }
    await tunnel.stub.sendReport();
    const newest = new Map<string, number>();
    for (const { tunnelId, spending } of rows.reports) {
      if (tunnelId !== tunnel.id) continue;
      for (const { tokenNonce, bytes } of spending) newest.set(tokenNonce, bytes);
    }
    expect(Object.fromEntries(newest)).toEqual({ a: 13, b: 200 });
  });

  test("to the month in which it is counted", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent({ tokenExpiresAtMs: Date.now() + 400 * 24 * 3600_000 });
    await visit(tunnel, agent, 7);
    await tunnel.stub.sendReport();
    const nextMonth = Date.now() + 32 * 24 * 3600_000;
    vi.useFakeTimers({ toFake: ["Date"], now: nextMonth });
    const again = await tunnel.agent({ tokenExpiresAtMs: nextMonth + 3600_000 });
    await visit(tunnel, again, 5);
    expect(await getSpending(tunnel)).toMatchObject([
      { month: month(nextMonth), bytes: 5, requests: 1 },
    ]);
  });

  test("and a restart loses nothing that was saved, and charges nothing twice", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await visit(tunnel, agent, 100);
    await runDurableObjectAlarm(tunnel.stub);
    await tunnel.sleep();
    await visit(tunnel, agent, 1);
    expect(await getSpending(tunnel)).toMatchObject([{ bytes: 101, requests: 2 }]);
  });

  test("to no token while no agent serves", async () => {
    const tunnel = new LiveTunnel();
    await tunnel.stub.setMaintenance(tunnel.id, { version: 1, isOn: false, message: null });
    expect((await tunnel.visit("/")).status).toBe(502);
    expect(await getSpending(tunnel)).toEqual([]);
  });
});

describe("an agent is closed", () => {
  test("when its token expires, even without visitors, and another token is accepted", async () => {
    const tunnel = new LiveTunnel();
    const endsAtMs = Date.now() + LEFT_MS;
    const agent = await tunnel.agent({ tokenExpiresAtMs: endsAtMs });
    await tunnel.runAlarmAt(endsAtMs);
    expect(await agent.closed).toEqual({
      code: CLOSE.unauthorized,
      reason: "unauthorized: the token has expired",
    });
    const other = await tunnel.agent({ tokenNonce: "token-b" });
    expect(other.welcome?.tunnelId).toBe(tunnel.id);
  });

  test("when its token expires, together with its streams", async () => {
    const tunnel = new LiveTunnel();
    const endsAtMs = Date.now() + LEFT_MS;
    const agent = await tunnel.agent({ tokenExpiresAtMs: endsAtMs });
    const answer = tunnel.visit("/");
    const { stream } = await agent.nextRequest();
    agent.respond(stream, 200, ["content-length", "100"]);
    const { body } = await answer;
    agent.send((writer) => writer.writeText(FRAME.data, 0, stream, "half"));
    await tunnel.runAlarmAt(endsAtMs);
    expect((await agent.closed).code).toBe(CLOSE.unauthorized);
    await expect(new Response(body).text()).rejects.toThrow();
  });

  test("when its token expires, even after hibernation", async () => {
    const tunnel = new LiveTunnel();
    const endsAtMs = Date.now() + LEFT_MS;
    const agent = await tunnel.agent({ tokenExpiresAtMs: endsAtMs });
    await runDurableObjectAlarm(tunnel.stub);
    await tunnel.sleep();
    await tunnel.runAlarmAt(endsAtMs);
    expect((await agent.closed).code).toBe(CLOSE.unauthorized);
  });

  test("when its token's budget is spent, and no visitor waits for its return", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent({ tokenNonce: "token-a" });
    await tunnel.stub.disconnectOverBudget("token-b");
    await visit(tunnel, agent, 1);
    await tunnel.stub.disconnectOverBudget("token-a");
    expect(await agent.closed).toEqual({
      code: CLOSE.BUDGET_EXCEEDED,
      reason:
        "BUDGET_EXCEEDED: this month's budget of the token, its master key or its organization is used up",
    });
    expect((await tunnel.visit("/")).status).toBe(502);
  });
});

describe("a slow token", () => {
  const RATE = { bandwidthLimitMbps: 8 };
  const BYTES_PER_MS = 1_000;

  test("delivers a response at its rate, in order and complete", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent(RATE);
    const startedAt = Date.now();
    const answer = tunnel.visit("/");
    const { stream } = await agent.nextRequest();
    agent.respond(stream, 200);
    const part = (n: number) => String(n % 10).repeat(60_000);
    for (let n = 0; n < 14; n++)
      agent.send((writer) =>
        writer.writeText(FRAME.data, n === 13 ? FLAG.end : 0, stream, part(n)),
      );
    const body = await (await answer).text();
    expect(body).toBe(Array.from({ length: 14 }, (_, n) => part(n)).join(""));
    const ms = Date.now() - startedAt;
    // The last part is sent after the time that the parts before it take.
    expect(ms).toBeGreaterThan((13 * 60_000) / BYTES_PER_MS - 200 - 50);
  });

  test("sends a visitor's body at its rate", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent(RATE);
    const startedAt = Date.now();
    const answer = tunnel.visit("/", { method: "POST", body: "y".repeat(800_000) });
    const { stream } = await agent.nextRequest();
    let received = 0;
    for (let isLast = false; !isLast;) {
      const { text, isLast: last } = await agent.nextData();
      received += text.length;
      isLast = last;
    }
    expect(received).toBe(800_000);
    expect(Date.now() - startedAt).toBeGreaterThan((800_000 - 65_536) / BYTES_PER_MS - 200 - 50);
    agent.respond(stream, 204);
    await answer;
  });

  test("delivers a WebSocket's messages at its rate and in order", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent(RATE);
    const { socket, stream } = await tunnel.visitorSocket(agent);
    const startedAt = Date.now();
    for (let n = 0; n < 10; n++)
      agent.send((writer) => writer.writeText(FRAME.text, 0, stream, `${n}`.repeat(60_000)));
    for (let n = 0; n < 10; n++) expect((await socket.nextMessage()).at(0)).toBe(String(n));
    expect(Date.now() - startedAt).toBeGreaterThan((9 * 60_000) / BYTES_PER_MS - 200 - 50);
    agent.send((writer) => writer.writeCodeAndText(FRAME.close, stream, 4001, "bye"));
    expect(await socket.closed).toEqual({ code: 4001, reason: "bye" });
  });

  test("delivers what a local server answers instead of accepting WebSockets at its rate, and counts it", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent(RATE);
    const body = "n".repeat(400_000);
    const startedAt = Date.now();
    const answers = Array.from({ length: 2 }, () =>
      tunnel.visit("/chat", { headers: { upgrade: "websocket" } }),
    );
    for (const _ of answers) agent.respond((await agent.nextRequest()).stream, 403, [], body);
    for (const answer of answers) expect(await (await answer).text()).toHaveLength(body.length);
    expect(Date.now() - startedAt).toBeGreaterThan(body.length / BYTES_PER_MS - 200 - 50);
    expect((await tunnel.stub.sendReport())?.bytesOut).toBe(2 * body.length);
  });

  test("does not delay a small response behind a large one", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent({ bandwidthLimitMbps: 1 });
    const large = tunnel.visit("/large");
    const { stream } = await agent.nextRequest();
    agent.respond(stream, 200);
    // Nearly eight seconds at this rate.
    for (let n = 0; n < 16; n++)
      agent.send((writer) => writer.writeText(FRAME.data, 0, stream, "z".repeat(60_000)));
    let received = 0;
    const leave = new AbortController();
    const reading = (await large).body!.pipeTo(
      new WritableStream<Uint8Array>({ write: (chunk) => void (received += chunk.byteLength) }),
      { signal: leave.signal },
    );
    const small = tunnel.visit("/small");
    agent.respond((await agent.nextRequest()).stream, 200, [], "small");
    expect(await (await small).text()).toBe("small");
    expect(received).toBeLessThan(16 * 60_000);
    leave.abort();
    await expect(reading).rejects.toThrow();
  });
});
