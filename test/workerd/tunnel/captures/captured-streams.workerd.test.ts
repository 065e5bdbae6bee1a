import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  CAPTURE_MEMORY_MAX_BYTES,
  CAPTURES_STORED_MAX_BYTES,
} from "../../../../durable-objects/tunnel/captures/captures.ts";
import { FLAG, FRAME } from "../../../../protocol/wire/frames.ts";
import { BODY_CAPTURE_MAX_BYTES } from "../../../../durable-objects/tunnel/captures/body.ts";
import { ENTRY_CAPTURE_MAX_BYTES } from "../../../../durable-objects/limits.ts";
import {
  LOG_PAGE_MAX_ENTRIES,
  LOG_PAGES_MAX,
} from "../../../../durable-objects/tunnel/captures/capture-store.ts";
import type {
  CaptureDetail,
  CaptureState,
} from "../../../../protocol/schemas/inspector/captures.ts";
import {
  listCaptures,
  lastCapture,
  nextRequest,
  setCaptureSettings,
  decodeBase64Text,
  completeVisit,
  getCapture,
} from "../../../harness/workerd/live-captures.ts";
import { bindings, LiveTunnel, type TestAgent } from "../../../harness/workerd/live-tunnel.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

afterEach(() => void vi.useRealTimers());

async function createServed() {
  const tunnel = new LiveTunnel();
  return { tunnel, agent: await tunnel.agent() };
}

function waitForFrames(tunnel: LiveTunnel, count: number): Promise<CaptureDetail> {
  return vi.waitUntil(async () => {
    const event = await lastCapture(tunnel);
    return event.frames_total === count && event;
  }, WAIT_OPTIONS);
}

function waitForState(tunnel: LiveTunnel, state: CaptureState): Promise<CaptureDetail> {
  return vi.waitUntil(async () => {
    const event = await lastCapture(tunnel);
    return event.state === state && event;
  }, WAIT_OPTIONS);
}

describe("a WebSocket is captured", () => {
  test("with each message both ways, its time, size, kind and first bytes, and how it was closed", async () => {
    const { tunnel, agent } = await createServed();
    const { socket, stream } = await tunnel.visitorSocket(agent);
    const long = "x".repeat(ENTRY_CAPTURE_MAX_BYTES + 10);
    socket.socket.send("hello");
    await agent.next(FRAME.text);
    agent.send((writer) => writer.writeText(FRAME.text, 0, stream, long));
    await socket.nextMessage();
    agent.send((writer) => writer.writeBytes(FRAME.binary, 0, stream, new Uint8Array([1, 2])));
    await socket.nextMessage();
    const open = await waitForFrames(tunnel, 3);
    expect(open).toMatchObject({
      kind: "websocket",
      state: "open",
      status: 101,
      request_size: 5,
      response_size: long.length + 2,
      truncated: { request: false, response: false, request_head: false, response_head: false },
    });
    expect(open.frames).toMatchObject([
      { from: "client", kind: "text", size: 5, data: btoa("hello") },
      {
        from: "server",
        kind: "text",
        size: long.length,
        data: btoa(long.slice(0, ENTRY_CAPTURE_MAX_BYTES)),
      },
      { from: "server", kind: "binary", size: 2, data: btoa("\x01\x02") },
    ]);
    expect(Date.parse(open.frames[0]!.timestamp)).toBeGreaterThanOrEqual(
      Date.parse(open.timestamp),
    );
    socket.socket.close(4001, "bye");
    const { frames, duration_ms } = await waitForState(tunnel, "complete");
    expect(duration_ms).toBeGreaterThanOrEqual(0);
    expect(frames.at(-1)).toMatchObject({
      from: "client",
      kind: "close",
      data: btoa(`${String.fromCharCode(4001 >> 8, 4001 & 0xff)}bye`),
    });
  });

  test("through hibernation: in one capture that continues", async () => {
    const { tunnel, agent } = await createServed();
    const { socket, stream } = await tunnel.visitorSocket(agent);
    socket.socket.send("before");
    await agent.next(FRAME.text);
    const { id } = await waitForFrames(tunnel, 1);
    await tunnel.sleep();
    socket.socket.send("after");
    await agent.next(FRAME.text);
    const event = await waitForFrames(tunnel, 2);
    expect(event).toMatchObject({ id, state: "open", request_size: 11 });
    expect(event.frames.map(({ data }) => decodeBase64Text(data))).toEqual(["before", "after"]);
    await tunnel.sleep();
    agent.send((writer) => writer.writeCodeAndText(FRAME.close, stream, 1000, ""));
    await socket.closed;
    expect(await waitForState(tunnel, "complete")).toMatchObject({ id, frames_total: 3 });
    expect(await listCaptures(tunnel)).toHaveLength(1);
  });

  test("while it hibernates: it is listed as open, and after its row was deleted it is recorded to its end", async () => {
    const { tunnel, agent } = await createServed();
    const { socket } = await tunnel.visitorSocket(agent);
    socket.socket.send("before");
    await agent.next(FRAME.text);
    const { id } = await waitForFrames(tunnel, 1);
    await tunnel.sleep();
    expect(await listCaptures(tunnel)).toMatchObject([{ id, state: "open" }]);
    await tunnel.sleep();
    await tunnel.stub.clearCaptures(Date.now());
    expect(await getCapture(tunnel.stub, id)).toMatchObject({ state: "open", frames_total: 1 });
    socket.socket.send("after");
    await agent.next(FRAME.text);
    expect(await getCapture(tunnel.stub, id)).toMatchObject({ request_size: 11, frames_total: 2 });
  });

  test("and has failed when its agent disconnects, also while the tunnel hibernates", async () => {
    const { tunnel, agent } = await createServed();
    await tunnel.visitorSocket(agent);
    await vi.waitUntil(async () => (await lastCapture(tunnel)).status === 101, WAIT_OPTIONS);
    await tunnel.sleep();
    await tunnel.agent();
    expect(await waitForState(tunnel, "failed")).toMatchObject({ error: "agent_offline" });
  });

  test("that the local server refused: with its response", async () => {
    const { tunnel, agent } = await createServed();
    const answer = tunnel.visit("/socket", { headers: { upgrade: "websocket" } });
    agent.respond((await agent.nextRequest()).stream, 403, ["x-why", "no"], "go away");
    await (await answer).text();
    const event = await lastCapture(tunnel);
    expect(event).toMatchObject({ kind: "websocket", status: 403, state: "complete" });
    expect(decodeBase64Text(event.response_body)).toBe("go away");
  });

  test("with the newest of very many messages, and their total", async () => {
    const { tunnel, agent } = await createServed();
    const { stream, socket } = await tunnel.visitorSocket(agent);
    const most = LOG_PAGE_MAX_ENTRIES * LOG_PAGES_MAX;
    const count = most + 2 * LOG_PAGE_MAX_ENTRIES;
    for (let i = 0; i < count; i += 100) {
      agent.send((writer) => {
        for (let at = i; at < i + 100; at += 1) writer.writeText(FRAME.text, 0, stream, String(at));
      });
    }
    for (let i = 0; i < count; i += 1) await socket.nextMessage();
    const { frames } = await waitForFrames(tunnel, count);
    expect(frames.length).toBeLessThanOrEqual(most);
    expect(frames.length).toBeGreaterThan(most - LOG_PAGE_MAX_ENTRIES);
    expect(decodeBase64Text(frames.at(-1)!.data)).toBe(String(count - 1));
    expect(decodeBase64Text(frames[0]!.data)).toBe(String(count - frames.length));
  });
});

async function eventStream(tunnel: LiveTunnel, agent: TestAgent, pairs: string[] = []) {
  const answer = tunnel.visit("/events");
  const { stream } = await agent.nextRequest();
  agent.respond(stream, 200, ["content-type", "text/event-stream; charset=utf-8", ...pairs]);
  const { body } = await answer;
  const send = (text: string, flags = 0) =>
    agent.send((writer) => writer.writeText(FRAME.data, flags, stream, text));
  return { body: body!, send };
}

describe("an event stream is captured", () => {
  test("event by event while it streams, however it is split into chunks", async () => {
    const { tunnel, agent } = await createServed();
    const { body, send } = await eventStream(tunnel, agent);
    const read = new Response(body).text();
    send("id: 7\nevent: price\nda");
    send("ta: 1\ndata: 2\n\n: still here\n\nda");
    const open = await vi.waitUntil(async () => {
      const event = await lastCapture(tunnel);
      return event.events_total === 1 && event;
    }, WAIT_OPTIONS);
    expect(open).toMatchObject({ kind: "sse", state: "open", status: 200 });
    expect(open.events).toMatchObject([{ event: "price", id: "7", data: "1\n2" }]);
    send("ta: last\r\n\r\n", FLAG.end);
    await read;
    const ended = await waitForState(tunnel, "complete");
    expect(ended.events).toMatchObject([{ id: "7" }, { event: "message", id: null, data: "last" }]);
    expect(decodeBase64Text(ended.response_body)).toContain(": still here");
  });

  test("that was open when the object stopped is shown as aborted, with its events", async () => {
    const { tunnel, agent } = await createServed();
    const { send } = await eventStream(tunnel, agent);
    send("data: one\n\n");
    await vi.waitUntil(async () => (await lastCapture(tunnel)).events_total === 1, WAIT_OPTIONS);
    await runInDurableObject(tunnel.stub, (_, ctx) => ctx.abort("crash")).catch(() => undefined);
    const restarted = bindings.TUNNEL.getByName(tunnel.id);
    const [summary] = await restarted.listCaptures({ limit: 1 });
    expect(summary).toMatchObject({ state: "aborted", status: 200 });
    expect((await getCapture(restarted, summary!.id))!.events).toMatchObject([{ data: "one" }]);
  });
});

describe("a tunnel's captures are bounded", () => {
  test("in memory: further bodies of exchanges in flight are cut and marked as cut", async () => {
    const { tunnel, agent } = await createServed();
    const count = CAPTURE_MEMORY_MAX_BYTES / BODY_CAPTURE_MAX_BYTES + 2;
    const visits = Array.from({ length: count }, (_, i) => tunnel.visit(`/${i}`));
    const streams: number[] = [];
    for (let i = 0; i < count; i += 1) streams.push((await agent.nextRequest()).stream);
    for (const stream of streams) agent.respond(stream, 200);
    const bodies = visits.map(async (visit) => (await (await visit).bytes()).length);
    const part = new Uint8Array(64 * 1024);
    for (const stream of streams) {
      for (let at = 0; at < BODY_CAPTURE_MAX_BYTES; at += part.length) {
        agent.send((writer) => writer.writeBytes(FRAME.data, 0, stream, part));
      }
      // The connection's window bounds what is in flight; the visitors read it.
      await vi.waitUntil(() => agent.pendingFrames > 0, WAIT_OPTIONS);
      while (agent.pendingFrames > 0) await agent.nextFrame();
    }
    const open = await vi.waitUntil(async () => {
      const summaries = await listCaptures(tunnel);
      return summaries.every((one) => one.response_size === BODY_CAPTURE_MAX_BYTES) && summaries;
    }, WAIT_OPTIONS);
    let capturedBytes = 0;
    for (const { id } of open) {
      capturedBytes += atob((await getCapture(tunnel.stub, id))!.response_body).length;
    }
    // The rest is held by the heads.
    expect(capturedBytes).toBeLessThan(CAPTURE_MEMORY_MAX_BYTES);
    expect(capturedBytes).toBeGreaterThan(CAPTURE_MEMORY_MAX_BYTES - count * 2_000);
    const end = new Uint8Array();
    for (const stream of streams) {
      agent.send((writer) => writer.writeBytes(FRAME.data, FLAG.end, stream, end));
    }
    expect(new Set(await Promise.all(bodies))).toEqual(new Set([BODY_CAPTURE_MAX_BYTES]));
    const events = await Promise.all(open.map(({ id }) => getCapture(tunnel.stub, id)));
    const whole = events.filter((event) => !event!.truncated.response);
    expect(whole).toHaveLength(count - 3);
    // Memory is released after the write.
    await completeVisit(tunnel, agent, "/", "next");
    expect((await lastCapture(tunnel)).truncated.response).toBe(false);
  });

  test("by the plan's retention: older captures are not listed, and the alarm drops them", async () => {
    const { tunnel, agent } = await createServed();
    await completeVisit(tunnel, agent, "/old", "x".repeat(40_000));
    await agent.next(FRAME.credit);
    await setCaptureSettings(tunnel, { retentionDays: 2 });
    const { id } = await lastCapture(tunnel);
    const keys = () =>
      runInDurableObject(tunnel.stub, (_, ctx) => {
        return [...ctx.storage.kv.list({ prefix: "capture:" })].map(([key]) => key);
      });
    expect((await keys()).length).toBeGreaterThan(0);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 2 * 24 * 3600_000 + 1_000 });
    expect([await listCaptures(tunnel), await getCapture(tunnel.stub, id)]).toEqual([[], null]);
    await runDurableObjectAlarm(tunnel.stub);
    expect(await keys()).toEqual([]);
  });

  test("by the retention that an agent's admission carries, unless a newer one is stored", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent({ retention: { version: 1, days: 1 } });
    await completeVisit(tunnel, agent);
    await tunnel.agent({ retention: { version: 0, days: 30 } });
    const day = 24 * 3600_000;
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + day - 60_000 });
    expect(await listCaptures(tunnel)).toHaveLength(1);
    vi.setSystemTime(Date.now() + 120_000);
    expect(await listCaptures(tunnel)).toEqual([]);
  });

  test("in storage: the oldest are dropped first", async () => {
    const { tunnel, agent } = await createServed();
    const body = new Uint8Array(BODY_CAPTURE_MAX_BYTES);
    const count = CAPTURES_STORED_MAX_BYTES / body.length + 20;
    for (let i = 0; i < count; i += 1) {
      const answer = tunnel.visit(`/${i}`);
      const stream = await nextRequest(agent);
      agent.respond(stream, 200);
      const visitorBody = new Response((await answer).body).bytes();
      for (let at = 0; at < body.length; at += 64 * 1024) {
        const part = body.subarray(at, at + 64 * 1024);
        agent.send((writer) => writer.writeBytes(FRAME.data, 0, stream, part));
      }
      agent.send((writer) => writer.writeBytes(FRAME.data, FLAG.end, stream, new Uint8Array()));
      await visitorBody;
      if (i % 8 === 0) await listCaptures(tunnel, { limit: 1 });
    }
    const listed = await listCaptures(tunnel);
    const stored = await runInDurableObject(tunnel.stub, (_, ctx) => ctx.storage.sql.databaseSize);
    expect(stored).toBeLessThan(CAPTURES_STORED_MAX_BYTES + 2 * 1024 * 1024);
    expect(listed.length).toBeGreaterThan(100);
    expect(listed.length).toBeLessThan(count);
    expect(listed.map(({ path }) => path)).toEqual(
      Array.from({ length: listed.length }, (_, i) => `/${count - 1 - i}`),
    );
  });
});
