import { describe, expect, test, vi } from "vitest";
import { CLOSE } from "../../../../protocol/wire/close-codes.ts";
import { parseCredit, FLAG, FRAME, RESET } from "../../../../protocol/wire/frames.ts";
import {
  FRAME_DATA_MAX_BYTES,
  WEBSOCKET_MESSAGE_MAX_BYTES,
  STREAM_RESERVE_BYTES,
  STREAM_WINDOW_BYTES,
} from "../../../../protocol/limits.ts";
import { LiveTunnel, TestSocket, type TestAgent } from "../../../harness/workerd/live-tunnel.ts";
import { edgeGarbageCollection } from "../../../../shared/garbage-collection.ts";
import { createRandom } from "../../../harness/random.ts";
import { VISITOR_SOCKETS_MAX } from "../../../../durable-objects/tunnel/proxy/websockets/visitor-sockets.ts";
import { STRAY_FRAMES_PER_SECOND_MAX } from "../../../../durable-objects/tunnel/stray-frames.ts";
import { TUNNEL_SOCKETS_MAX_BYTES } from "../../../../durable-objects/tunnel/proxy/websockets/socket-memory.ts";

async function connected() {
  const tunnel = new LiveTunnel();
  const agent = await tunnel.agent();
  const { socket, stream } = await tunnel.visitorSocket(agent);
  return { tunnel, agent, socket, stream };
}

const upgrade = { headers: { upgrade: "websocket" } };

describe("a visitor's WebSocket", () => {
  test("carries text and binary both ways, empty ones and the word ping too", async () => {
    const { agent, socket, stream } = await connected();
    for (const text of ["hello", "", "ping", "𝄞"]) {
      socket.socket.send(text);
      const frame = await agent.next(FRAME.text);
      expect(frame).toMatchObject({ stream, flags: 0 });
      expect(new TextDecoder().decode(frame.payload)).toBe(text);
      agent.send((writer) => writer.writeText(FRAME.text, 0, stream, text));
      expect(await socket.nextMessage()).toBe(text);
      if (text !== "") await agent.next(FRAME.credit);
    }
    socket.socket.send(new Uint8Array([0, 255]));
    expect([...(await agent.next(FRAME.binary)).payload]).toEqual([0, 255]);
    agent.send((writer) => writer.writeBytes(FRAME.binary, 0, stream, new Uint8Array([1, 2])));
    expect(await socket.nextMessage()).toEqual(new Uint8Array([1, 2]));
  });

  test("counts messages of the visitor and of the agent for the garbage collector", async () => {
    const { agent, socket, stream } = await connected();
    const count = vi.spyOn(edgeGarbageCollection, "countMessage");
    socket.socket.send("from the visitor");
    await agent.next(FRAME.text);
    expect(count).toHaveBeenLastCalledWith("from the visitor");
    agent.send((writer) => writer.writeText(FRAME.text, 0, stream, "from the agent"));
    await socket.nextMessage();
    expect(count).toHaveBeenLastCalledWith(expect.any(ArrayBuffer));
    count.mockRestore();
  });

  test("joins a message that arrives in parts, and sends a large one in parts", async () => {
    const { agent, socket, stream } = await connected();
    const message = createRandom(7).bytes(3 * FRAME_DATA_MAX_BYTES + 1);
    for (let at = 0; at < message.byteLength; at += FRAME_DATA_MAX_BYTES) {
      const part = message.subarray(at, at + FRAME_DATA_MAX_BYTES);
      const flags = at + part.byteLength < message.byteLength ? FLAG.more : 0;
      agent.send((writer) => writer.writeBytes(FRAME.binary, flags, stream, part));
      await agent.next(FRAME.credit);
    }
    const received = (await socket.nextMessage()) as Uint8Array;
    expect(received.byteLength).toBe(message.byteLength);
    expect(received.every((byte, i) => byte === message[i])).toBe(true);

    socket.socket.send(message);
    const parts = [];
    do parts.push(await agent.next(FRAME.binary));
    while (parts.at(-1)!.flags & FLAG.more);
    expect(parts.map(({ payload }) => payload.byteLength)).toEqual([
      ...Array<number>(3).fill(FRAME_DATA_MAX_BYTES),
      1,
    ]);
  });

  test.each([
    [1000, "done"],
    [4321, "of our own"],
    [1005, ""],
  ])("closes with the local server's %i %s", async (code, reason) => {
    const { agent, socket, stream } = await connected();
    agent.send((writer) => writer.writeCodeAndText(FRAME.close, stream, code, reason));
    expect(await socket.closed).toEqual({ code, reason });
  });

  test.each([
    [1006, 1011],
    [1015, 1000],
    [999, 1000],
    [0, 1000],
  ])("closes for the local server's %i, which may not be sent, with %i", async (code, sent) => {
    const { agent, socket, stream } = await connected();
    agent.send((writer) => writer.writeCodeAndText(FRAME.close, stream, code, ""));
    expect((await socket.closed).code).toBe(sent);
  });

  test.each([
    [1000, "done"],
    [4321, "of my own"],
  ])("forwards the visitor's %i %s to the local server", async (code, reason) => {
    const { agent, socket, stream } = await connected();
    socket.socket.close(code, reason);
    expect(await agent.nextCode(FRAME.close)).toEqual({ stream, code, text: reason });
    expect(await socket.closed).toMatchObject({ code });
  });

  test("sends all earlier messages before the Close", async () => {
    const { agent, socket } = await connected();
    socket.socket.send("last words");
    socket.socket.close(1000);
    expect(new TextDecoder().decode((await agent.next(FRAME.text)).payload)).toBe("last words");
    await agent.nextCode(FRAME.close);
  });

  test("that the visitor closes does not cost the agent its connection, however many messages are still on their way", async () => {
    const { tunnel, agent, socket, stream } = await connected();
    socket.socket.close(1000);
    await agent.nextCode(FRAME.close);
    agent.send((writer) => {
      for (let n = 0; n <= STRAY_FRAMES_PER_SECOND_MAX; n += 1)
        writer.writeText(FRAME.text, 0, stream, "x");
    });
    const response = tunnel.visit("/");
    agent.respond((await agent.nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
  });

  test("closes when its agent is replaced, because its stream has ended", async () => {
    const { tunnel, socket } = await connected();
    await tunnel.agent();
    expect((await socket.closed).code).toBe(1012);
  });

  test("closes when the agent resets the stream", async () => {
    const { agent, socket, stream } = await connected();
    agent.send((writer) => writer.writeCodeAndText(FRAME.reset, stream, RESET.originFailed, ""));
    expect((await socket.closed).code).toBe(1011);
  });

  test.each<[string, (agent: TestAgent, stream: number) => void]>([
    [
      "gives the stream up",
      (agent, stream) => agent.send((w) => w.writeCodeAndText(FRAME.reset, stream, 4, "")),
    ],
    [
      "closes",
      (agent, stream) => agent.send((w) => w.writeCodeAndText(FRAME.close, stream, 1000, "")),
    ],
  ])("drops messages that wait for credit after the local server %s", async (_, end) => {
    const { tunnel, agent, socket, stream } = await connected();
    socket.socket.send(new Uint8Array(2 * STREAM_WINDOW_BYTES));
    let sent = 0;
    // Less than a whole part remains of the window.
    while (sent <= STREAM_WINDOW_BYTES - FRAME_DATA_MAX_BYTES)
      sent += (await agent.next(FRAME.binary)).payload.byteLength;
    end(agent, stream);
    await socket.closed;
    const response = tunnel.visit("/");
    let next = await agent.nextFrame();
    if (next.type === FRAME.close) next = await agent.nextFrame();
    expect(next.type).toBe(FRAME.request);
    agent.respond(next.stream, 204);
    await response;
  });

  test("closes on text that is not UTF-8, and resets the agent's stream", async () => {
    const { agent, socket, stream } = await connected();
    agent.send((writer) => writer.writeBytes(FRAME.text, 0, stream, new Uint8Array([0xc3, 0x28])));
    expect((await socket.closed).code).toBe(1007);
    expect((await agent.nextCode(FRAME.reset)).code).toBe(RESET.protocolError);
  });

  test("closes on a message above the limit, and resets the agent's stream", async () => {
    const { agent, socket, stream } = await connected();
    const part = new Uint8Array(512 * 1024);
    for (let sent = 0; sent <= WEBSOCKET_MESSAGE_MAX_BYTES; sent += part.byteLength)
      agent.send((writer) => writer.writeBytes(FRAME.binary, FLAG.more, stream, part));
    expect((await socket.closed).code).toBe(1009);
    while ((await agent.nextFrame()).type === FRAME.credit);
  });
});

describe("the messages of all visitors together", () => {
  test("are bounded: the WebSocket that holds the most is closed with 1013", async () => {
    const { tunnel, agent, socket } = await connected();
    const { socket: other } = await tunnel.visitorSocket(agent);
    // The agent gives no credit.
    const half = new Uint8Array(TUNNEL_SOCKETS_MAX_BYTES / 2);
    other.socket.send(half.subarray(0, half.byteLength - STREAM_WINDOW_BYTES));
    socket.socket.send(half);
    socket.socket.send(half.subarray(0, 2 * STREAM_WINDOW_BYTES));
    expect(await socket.closed).toEqual({
      code: 1013,
      reason: "the local server reads too slowly",
    });
    expect(other.socket.readyState).toBe(WebSocket.OPEN);
  });
});

describe("a WebSocket's handshake", () => {
  test("is 503 beyond the number that one source may have, and possible again when a visitor has left", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const { socket } = await tunnel.visitorSocket(agent);
    const answers = Array.from({ length: VISITOR_SOCKETS_MAX / 2 }, () =>
      tunnel.visit("/chat", upgrade),
    );
    const refused = await Promise.race(answers);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
    for (let i = 1; i < answers.length; i += 1) await agent.nextRequest();
    socket.socket.close(1000);
    await socket.closed;
    await agent.next(FRAME.close);
    const again = tunnel.visit("/chat", upgrade);
    agent.respond((await agent.nextRequest()).stream, 101);
    expect((await again).status).toBe(101);
    // Ends the handshakes.
    await tunnel.agent();
    await Promise.all(answers);
  });

  test("passes on no Content-Length", async () => {
    const headers = { ...upgrade.headers, "content-length": "0" };
    const { request } = await startHandshake({ headers });
    expect(request.pairs).not.toContain("content-length");
  });

  async function startHandshake(init: RequestInit = upgrade) {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const response = tunnel.visit("/chat?a", init);
    return { agent, response, request: await agent.nextRequest() };
  }

  test("is marked as a WebSocket, and negotiates the subprotocol", async () => {
    const headers = { ...upgrade.headers, "sec-websocket-protocol": "a, b" };
    const { agent, response, request } = await startHandshake({ headers });
    expect(request).toMatchObject({ flags: FLAG.socket, target: "/chat?a" });
    expect(request.pairs.join(" ")).toContain("sec-websocket-protocol a, b");
    agent.respond(request.stream, 101, ["sec-websocket-protocol", "b"]);
    const { status, headers: responseHeaders } = await response;
    expect([status, responseHeaders.get("sec-websocket-protocol")]).toEqual([101, "b"]);
  });

  test("that is refused forwards the refusal", async () => {
    const { agent, response, request } = await startHandshake();
    agent.respond(request.stream, 401, ["www-authenticate", "Basic"], "who are you?");
    const { status, headers } = await response;
    expect([status, headers.get("www-authenticate")]).toEqual([401, "Basic"]);
    expect(await (await response).text()).toBe("who are you?");
  });

  test("that is refused with a long body returns the whole window", async () => {
    const { agent, response, request } = await startHandshake();
    const body = "x".repeat(2 * STREAM_RESERVE_BYTES);
    agent.respond(request.stream, 403, [], body);
    expect(await (await response).text()).toBe(body);
    expect(parseCredit((await agent.next(FRAME.credit)).payload)).toBe(body.length);
  });

  test.each([
    ["a status", 999, []],
    ["a header line", 403, ["a b", "c"]],
  ])("that is refused with an invalid %s is a failure", async (_, status, pairs) => {
    const { agent, response, request } = await startHandshake();
    agent.respond(request.stream, status, pairs, "no");
    expect((await response).headers.get("underpass-error")).toBe("origin_failed");
  });

  test.each([
    [RESET.originUnreachable, "origin_unreachable"],
    [RESET.originTimeout, "origin_timeout"],
    [RESET.refused, "agent_offline"],
    [RESET.originFailed, "origin_failed"],
  ])("that fails with the reset %i is %s", async (code, error) => {
    const { agent, response, request } = await startHandshake();
    agent.send((writer) => writer.writeCodeAndText(FRAME.reset, request.stream, code, ""));
    expect((await response).headers.get("underpass-error")).toBe(error);
  });

  test("keeps messages that the local server sends right after its 101", async () => {
    const { agent, response, request } = await startHandshake();
    agent.send((writer) => {
      writer.writeJson(FRAME.response, 0, request.stream, [101]);
      writer.writeText(FRAME.text, 0, request.stream, "one");
      writer.writeText(FRAME.text, 0, request.stream, "two");
      writer.writeCodeAndText(FRAME.close, request.stream, 4000, "enough");
    });
    const socket = new TestSocket((await response).webSocket!);
    expect([await socket.nextMessage(), await socket.nextMessage()]).toEqual(["one", "two"]);
    expect((await socket.closed).code).toBe(4000);
  });

  test("that is reset right after the 101 closes the visitor's WebSocket", async () => {
    const { agent, response, request } = await startHandshake();
    agent.send((writer) => {
      writer.writeJson(FRAME.response, 0, request.stream, [101]);
      writer.writeCodeAndText(FRAME.reset, request.stream, RESET.originFailed, "");
    });
    expect((await new TestSocket((await response).webSocket!).closed).code).toBe(1011);
  });

  const violations: Record<string, (agent: TestAgent, stream: number) => void> = {
    "a message before the yes": (agent, stream) =>
      agent.send((w) => w.writeText(FRAME.text, 0, stream, "early")),
    "a body before the no": (agent, stream) =>
      agent.send((w) => w.writeText(FRAME.data, 0, stream, "early")),
    "a head that is none": (agent, stream) =>
      agent.send((w) => w.writeJson(FRAME.response, 0, stream, [])),
  };
  test.each(Object.entries(violations))("with %s ends the connection", async (_, send) => {
    const { agent, response, request } = await startHandshake();
    send(agent, request.stream);
    expect((await agent.closed).code).toBe(CLOSE.protocol_error);
    expect((await response).headers.get("underpass-error")).toBe("agent_offline");
  });
});
