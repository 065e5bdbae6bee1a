import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { STATE_FRAME_COST } from "../../../../durable-objects/tunnel/agents/agent-link.ts";
import { STRAY_FRAMES_PER_SECOND_MAX } from "../../../../durable-objects/tunnel/stray-frames.ts";
import { CONNECTIONS_WITHOUT_HELLO_MAX } from "../../../../durable-objects/tunnel/agents/agents.ts";
import { CLOSE, type CloseName } from "../../../../protocol/wire/close-codes.ts";
import {
  FLAG,
  FRAME,
  PING,
  PONG,
  FRAME_MAX_BYTES,
  type FrameWriter,
} from "../../../../protocol/wire/frames.ts";
import {
  DRAIN_TIMEOUT_MS,
  HEARTBEAT_INTERVAL_MS,
  HEARTBEAT_TIMEOUT_MS,
  HELLO_TIMEOUT_MS,
  STREAM_RESERVE_BYTES,
  STREAM_WINDOW_BYTES,
} from "../../../../protocol/limits.ts";
import {
  HELLO,
  LiveTunnel,
  RefusedError,
  type TestAgent,
} from "../../../harness/workerd/live-tunnel.ts";
import { createRandom } from "../../../harness/random.ts";

afterEach(() => void vi.useRealTimers());

describe("an agent", () => {
  test("is welcomed with its tunnel's address and the connection's terms", async () => {
    const tunnel = new LiveTunnel();
    const { welcome } = await tunnel.agent();
    expect(welcome).toMatchObject({
      protocol: 1,
      tunnelId: tunnel.id,
      name: "shop",
      subdomain: "shop",
      url: "http://shop.localhost",
      streamWindow: STREAM_WINDOW_BYTES,
      heartbeatIntervalMs: HEARTBEAT_INTERVAL_MS,
      heartbeatTimeoutMs: HEARTBEAT_TIMEOUT_MS,
    });
  });

  test("has its heartbeat answered", async () => {
    const agent = await new LiveTunnel().agent();
    agent.socket.send(PING);
    expect(await agent.nextMessage()).toBe(PONG);
  });

  test("that reconnects serves at once, and its previous connection is closed as replaced", async () => {
    const tunnel = new LiveTunnel();
    const first = await tunnel.agent();
    const second = await tunnel.agent();
    expect(await first.closed).toMatchObject({
      code: CLOSE.replaced,
      reason: expect.stringMatching(/^replaced: /),
    });
    const response = tunnel.visit("/");
    second.respond((await second.nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
  });

  test("that was replaced causes no report when its connection has closed", async () => {
    const tunnel = new LiveTunnel();
    await tunnel.agent();
    const replaced = await runInDurableObject(tunnel.stub, (_, ctx) => ctx.getWebSockets()[0]!);
    await tunnel.agent();
    await runDurableObjectAlarm(tunnel.stub);
    await runInDurableObject(tunnel.stub, async (object, { storage }) => {
      const alarmAtMs = await storage.getAlarm();
      object.webSocketClose(replaced, CLOSE.replaced, "", true);
      expect(await storage.getAlarm()).toBe(alarmAtMs);
    });
  });

  test("with another credential is refused while an agent is connected", async () => {
    const tunnel = new LiveTunnel();
    const first = await tunnel.agent({ tokenNonce: "token-a" });
    const second = await tunnel.connect({ tokenNonce: "token-b" });
    second.send((writer) => writer.writeJson(FRAME.hello, 0, 0, HELLO));
    expect((await second.closed).code).toBe(CLOSE.duplicate_name);
    first.socket.close(1000);
    await first.closed;
    const other = await tunnel.agent({ tokenNonce: "token-b" });
    expect(other.welcome?.tunnelId).toBe(tunnel.id);
  });
});

describe("a connection that does not begin with a valid hello is closed", () => {
  const cases: Record<string, [send: (agent: TestAgent) => void, close: keyof typeof CLOSE]> = {
    "another version": [
      (agent) => agent.send((w) => w.writeJson(FRAME.hello, 0, 0, { ...HELLO, protocol: 2 })),
      "unsupported_version",
    ],
    "another frame": [(agent) => agent.send((w) => w.writeCredit(1, 1)), "protocol_error"],
    "a hello that is no JSON": [
      (agent) => agent.send((w) => w.writeText(FRAME.hello, 0, 0, "{")),
      "protocol_error",
    ],
    "a hello without a window": [
      (agent) => agent.send((w) => w.writeJson(FRAME.hello, 0, 0, { ...HELLO, streamWindow: 0 })),
      "protocol_error",
    ],
    "a hello of more than 16 KiB": [
      (agent) =>
        agent.send((w) => w.writeJson(FRAME.hello, 0, 0, { ...HELLO, x: "x".repeat(16_384) })),
      "protocol_error",
    ],
    "a hello and another frame": [
      (agent) =>
        agent.send((w) => {
          w.writeJson(FRAME.hello, 0, 0, HELLO);
          w.writeJson(FRAME.health, 0, 0, { healthy: false });
        }),
      "protocol_error",
    ],
    "half a hello": [
      (agent) => agent.socket.send(new Uint8Array([1, 0, 0, 0, 0])),
      "protocol_error",
    ],
    text: [(agent) => agent.socket.send("hello"), "protocol_error"],
  };

  test.concurrent.each(Object.entries(cases))("%s", async (_, [send, name]) => {
    const agent = await new LiveTunnel().connect();
    send(agent);
    const { code, reason } = await agent.closed;
    expect([code, reason.split(":")[0]]).toEqual([CLOSE[name], name]);
  });

  test("when it sends nothing", async () => {
    const tunnel = new LiveTunnel();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const agent = await tunnel.connect();
    await runInDurableObject(tunnel.stub, () => void vi.advanceTimersByTime(HELLO_TIMEOUT_MS));
    vi.useRealTimers();
    expect((await agent.closed).reason).toBe("protocol_error: no hello");
  });

  test("the oldest one, when a tunnel has too many connections without a hello, and a new agent gets in", async () => {
    const tunnel = new LiveTunnel();
    const serving = await tunnel.agent();
    const waiting = [];
    for (let n = 0; n < CONNECTIONS_WITHOUT_HELLO_MAX; n += 1) waiting.push(await tunnel.connect());
    const agent = await tunnel.agent();
    expect(await waiting[0]!.closed).toEqual({
      code: CLOSE.protocol_error,
      reason: "protocol_error: too many connections of this tunnel without a hello",
    });
    expect((await serving.closed).code).toBe(CLOSE.replaced);
    const response = tunnel.visit("/");
    agent.respond((await agent.nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
    waiting[1]!.send((writer) => writer.writeJson(FRAME.hello, 0, 0, HELLO));
    expect((await agent.closed).code).toBe(CLOSE.replaced);
  });

  test("and does not serve if a valid hello follows", async () => {
    const tunnel = new LiveTunnel();
    const serving = await tunnel.agent();
    const bad = await tunnel.connect();
    bad.send((writer) => writer.writeCredit(1, 1));
    bad.send((writer) => writer.writeJson(FRAME.hello, 0, 0, HELLO));
    expect((await bad.closed).code).toBe(CLOSE.protocol_error);
    const response = tunnel.visit("/");
    serving.respond((await serving.nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
  });
});

/** What an agent sends while it answers a request. */
type Cases = Record<string, (agent: TestAgent, stream: number) => void>;

/** The agent receives a request, and sends what it should not. Its connection is closed, and the visitor gets an answer. */
async function expectClosed(send: Cases[string], name: CloseName): Promise<void> {
  const tunnel = new LiveTunnel();
  const agent = await tunnel.agent();
  const body = new Uint8Array(SENT_BYTES);
  const response = tunnel.visit("/", { method: "POST", body });
  const { stream } = await agent.nextRequest();
  await agent.nextData();
  send(agent, stream);
  const { code, reason } = await agent.closed;
  expect([code, reason.split(":")[0]]).toEqual([CLOSE[name], name]);
  expect([200, 502]).toContain((await response).status);
  await (await response).body?.cancel();
}

/** Above the stream's reserve: less is forgotten at the end of a stream. */
const SENT_BYTES = STREAM_RESERVE_BYTES + 1;

describe("an agent that sends too much at once is disconnected, and may reconnect:", () => {
  /** More frames than no stream may take in a second, in one message. */
  const sendMany = (agent: TestAgent, write: (writer: FrameWriter) => void) =>
    agent.send((writer) => {
      for (let n = 0; n <= STRAY_FRAMES_PER_SECOND_MAX; n++) write(writer);
    });
  const cases: Cases = {
    "too many frames of streams that have ended": (agent) =>
      sendMany(agent, (w) => w.writeText(FRAME.data, 0, 9, "")),
    "too many resets of streams that have ended": (agent) =>
      sendMany(agent, (w) => w.writeCodeAndText(FRAME.reset, 9, 1, "")),
    "too much credit for streams that have ended": (agent) =>
      sendMany(agent, (w) => w.writeCredit(9, 1)),
    "too many empty parts of a response": (agent, stream) => {
      agent.send((w) => w.writeJson(FRAME.response, 0, stream, [200]));
      sendMany(agent, (w) => w.writeText(FRAME.data, 0, stream, ""));
    },
    "too much credit of no bytes": (agent, stream) =>
      sendMany(agent, (w) => w.writeCredit(stream, 0)),
    "too many announcements that it goes away": (agent) =>
      agent.send((w) => {
        const count = STRAY_FRAMES_PER_SECOND_MAX / STATE_FRAME_COST + 1;
        for (let n = 0; n < count; n++) w.writeText(FRAME.goingAway, 0, 0, "");
      }),
  };

  test.each(Object.entries(cases))("%s", (_, send) => expectClosed(send, "overloaded"));
});

describe("a protocol violation closes the agent's connection, and its visitor gets an error", () => {
  const cases: Cases = {
    "a text message": (agent) => agent.socket.send("ping"),
    "half a frame": (agent) => agent.socket.send(new Uint8Array(7)),
    "a frame without end": (agent) => {
      const message = new Uint8Array(10);
      new DataView(message.buffer).setUint32(6, 0xffffffff);
      agent.socket.send(message);
    },
    "a frame above the limit": (agent) =>
      agent.send((w) => w.writeBytes(FRAME.data, 0, 1, new Uint8Array(FRAME_MAX_BYTES + 1))),
    garbage: (agent) => agent.socket.send(createRandom(5).bytes(500)),
    "a second hello": (agent) => agent.send((w) => w.writeJson(FRAME.hello, 0, 0, HELLO)),
    "a request": (agent) => agent.send((w) => w.writeJson(FRAME.request, 0, 9, ["GET", "/"])),
    "a frame of no known type": (agent) =>
      agent.send((w) => w.writeBytes(200 as never, 0, 1, new Uint8Array())),
    "a body before its head": (agent, stream) =>
      agent.send((w) => w.writeText(FRAME.data, 0, stream, "body")),
    "a second head": (agent, stream) => {
      agent.respond(stream, 200);
      agent.respond(stream, 200);
    },
    "a head that is none": (agent, stream) =>
      agent.send((w) => w.writeJson(FRAME.response, 0, stream, ["200"])),
    "a WebSocket message on a request": (agent, stream) =>
      agent.send((w) => w.writeText(FRAME.text, 0, stream, "hi")),
    "credit for what was never sent": (agent, stream) => {
      agent.send((w) => w.writeCredit(stream, SENT_BYTES + 1));
    },
    "credit that is no number": (agent, stream) =>
      agent.send((w) => w.writeBytes(FRAME.credit, 0, stream, new Uint8Array(3))),
    "a reset without a code": (agent, stream) =>
      agent.send((w) => w.writeBytes(FRAME.reset, 0, stream, new Uint8Array(1))),
  };

  test.each(Object.entries(cases))("%s", (_, send) => expectClosed(send, "protocol_error"));

  test("and does not affect the agent of another tunnel", async () => {
    const [good, bad] = [new LiveTunnel(), new LiveTunnel()];
    const [agent, fuzzer] = [await good.agent(), await bad.agent()];
    fuzzer.socket.send(createRandom(6).bytes(100_000));
    expect((await fuzzer.closed).code).toBe(CLOSE.protocol_error);
    const response = good.visit("/");
    agent.respond((await agent.nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
  });
});

test("frames for a stream that has ended are ignored", async () => {
  const tunnel = new LiveTunnel();
  const agent = await tunnel.agent();
  const response = tunnel.visit("/");
  const { stream } = await agent.nextRequest();
  agent.respond(stream, 200, [], "done");
  agent.send((writer) => {
    writer.writeText(FRAME.data, 0, stream, "late");
    writer.writeCodeAndText(FRAME.reset, stream, 1, "late");
    writer.writeCredit(stream, 5);
    writer.writeText(FRAME.text, FLAG.more, stream, "late");
    writer.writeCodeAndText(FRAME.close, stream, 1000, "");
  });
  expect(await (await response).text()).toBe("done");
  const next = tunnel.visit("/");
  agent.respond((await agent.nextRequest()).stream, 204);
  expect((await next).status).toBe(204);
});

describe("a tunnel", () => {
  test("that is retired disconnects its agent permanently and answers with 404 from then on", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const waiting = tunnel.visit("/");
    await agent.nextRequest();
    await tunnel.stub.retire();
    expect((await agent.closed).code).toBe(CLOSE.tunnel_deleted);
    expect((await waiting).headers.get("underpass-error")).toBe("tunnel_not_found");
    expect((await tunnel.visit("/")).status).toBe(404);
    await expect(tunnel.connect()).rejects.toThrow(RefusedError);
    await tunnel.sleep();
    expect((await tunnel.visit("/")).status).toBe(404);
    await expect(tunnel.connect()).rejects.toThrow(RefusedError);
  });

  test("disconnects the agents of a revoked credential and no others", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent({ tokenNonce: "token-a" });
    const early = await tunnel.connect({ tokenNonce: "token-b" });
    await tunnel.stub.revokeToken("token-b");
    expect((await early.closed).code).toBe(CLOSE.unauthorized);
    const response = tunnel.visit("/");
    agent.respond((await agent.nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
    await tunnel.stub.revokeToken("token-a");
    expect((await agent.closed).code).toBe(CLOSE.unauthorized);
    expect((await tunnel.visit("/")).status).toBe(502);
  });

  test("does not serve after the agent's token has expired", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent({ tokenExpiresAtMs: Date.now() - 1 });
    expect((await tunnel.visit("/")).headers.get("underpass-error")).toBe("agent_offline");
    expect((await agent.closed).code).toBe(CLOSE.unauthorized);
  });

  test("lets requests in flight finish before it disconnects its agent for a restart", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const response = tunnel.visit("/");
    const { stream } = await agent.nextRequest();
    agent.respond(stream, 200);
    const { body } = await response;
    agent.send((writer) => writer.writeText(FRAME.data, 0, stream, "half, "));
    const reader = body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toBe("half, ");
    const drained = tunnel.stub.drain();
    await agent.next(FRAME.goingAway);
    expect((await tunnel.visit("/")).headers.get("underpass-error")).toBe("unavailable");
    await expect(tunnel.connect()).rejects.toThrow(RefusedError);
    agent.send((writer) => writer.writeText(FRAME.data, FLAG.end, stream, "whole"));
    expect((await reader.read()).value).toBe("whole");
    expect((await reader.read()).done).toBe(true);
    await drained;
    expect((await agent.closed).code).toBe(CLOSE.going_away);
  });

  test("tells the visitors of WebSockets that the server restarts", async () => {
    const tunnel = new LiveTunnel();
    const { socket } = await tunnel.visitorSocket(await tunnel.agent());
    vi.useFakeTimers({ toFake: ["Date"] });
    const drained = tunnel.stub.drain();
    vi.setSystemTime(Date.now() + DRAIN_TIMEOUT_MS);
    await drained;
    expect(await socket.closed).toEqual({ code: 1012, reason: "the server is restarting" });
  });

  test("waits at most ten seconds for a response that does not end", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const response = tunnel.visit("/");
    const { stream } = await agent.nextRequest();
    agent.respond(stream, 200);
    const reader = (await response).body!.getReader();
    vi.useFakeTimers({ toFake: ["Date"] });
    let isDrained = false;
    const drained = tunnel.stub.drain().then(() => (isDrained = true));
    await agent.next(FRAME.goingAway);
    vi.setSystemTime(Date.now() + DRAIN_TIMEOUT_MS - 1);
    agent.send((writer) => writer.writeText(FRAME.data, 0, stream, "more"));
    expect((await reader.read()).value).toHaveLength(4);
    expect(isDrained).toBe(false);
    vi.setSystemTime(Date.now() + 1);
    await drained;
    expect((await agent.closed).code).toBe(CLOSE.going_away);
    void reader.cancel();
  });
});
