import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { WebSocketServer, type WebSocket } from "ws";
import { CLOSE, type CloseName } from "../../../protocol/wire/close-codes.ts";
import {
  CLOSE_CAPABILITY,
  FLAG,
  FRAME,
  RESET,
  type Welcome,
} from "../../../protocol/wire/frames.ts";
import {
  CONNECTION_WINDOW_BYTES,
  HEARTBEAT_TIMEOUT_MS,
  STREAM_WINDOW_BYTES,
} from "../../../protocol/limits.ts";
import { HOUR_MS } from "../../../shared/time.ts";
import { ORIGIN_CONNECTIONS_MAX } from "../../../agent/limits.ts";
import { OK, startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import {
  startScriptedTunnel,
  WELCOME,
  type ScriptedConnection,
  type ScriptedTunnel,
} from "../../harness/tunnel/scripted-tunnel.ts";

let origin: RawOrigin;
beforeAll(async () => void (origin = await startRawOrigin()));
afterAll(() => origin.stop());
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

async function started(tunnel: ScriptedTunnel): Promise<ScriptedConnection> {
  const ready = once(tunnel.agent, "ready");
  tunnel.agent.start();
  const connection = await tunnel.connection();
  await ready;
  return connection;
}

describe("the agent answers any request and continues to serve:", () => {
  const head = ["GET", "/", "host", "shop.localhost"];
  const cases: Record<string, [head: string[], flags: number]> = {
    "an invalid method": [["BAD METHOD", "/"], FLAG.end],
    "an empty method": [["", "/"], FLAG.end],
    "an invalid target": [["GET", "nowhere"], FLAG.end],
    "an absolute target": [["OPTIONS", "*"], FLAG.end],
    "an invalid header name": [[...head, "a b", "c"], FLAG.end],
    "a line break in a header": [[...head, "a", "b\r\nc: d"], FLAG.end],
    "headers of one connection": [
      [...head, "transfer-encoding", "chunked", "expect", "x"],
      FLAG.end,
    ],
    "an invalid length": [[...head, "content-length", "x"], 0],
    "a repeated subprotocol": [[...head, "sec-websocket-protocol", "a, a"], FLAG.socket],
    "an invalid subprotocol": [[...head, "sec-websocket-protocol", "a b"], FLAG.socket],
    "an invalid header of a WebSocket": [[...head, "a b", "c"], FLAG.socket],
    "an invalid target of a WebSocket": [["GET", "a b", "host", "x"], FLAG.socket],
  };

  test.each(Object.entries(cases))("%s", async (_, [parts, flags]) => {
    await using tunnel = await startScriptedTunnel(origin.port);
    const connection = await started(tunnel);
    connection.request(1, parts, flags);
    const outcome = await connection.waitForOutcome(1);
    expect([{ reset: RESET.originFailed }, { status: 200, body: "ok" }]).toContainEqual(outcome);
    connection.request(2, head);
    expect(await connection.waitForOutcome(2)).toEqual({ status: 200, body: "ok" });
  });

  test("an absolute target never leads to another server", async () => {
    const canary = await startRawOrigin();
    await using tunnel = await startScriptedTunnel(origin.port);
    const connection = await started(tunnel);
    for (const flags of [FLAG.end, FLAG.socket]) {
      connection.request(flags, ["GET", `http://127.0.0.1:${canary.port}/`, "host", "x"], flags);
      await connection.waitForOutcome(flags);
    }
    expect(canary.requests).toEqual([]);
    await canary.stop();
  });
});

describe("an agent", () => {
  test.each(["going_away", "internal", "heartbeat_timeout"] as CloseName[])(
    "reconnects after %s, with the same name",
    async (name) => {
      await using tunnel = await startScriptedTunnel(origin.port);
      const connection = await started(tunnel);
      const disconnected = once(tunnel.agent, "disconnected");
      const reconnected = once(tunnel.agent, "reconnected");
      connection.socket.close(CLOSE[name], `${name}: why`);
      expect(await disconnected).toEqual([`${name}: why`]);
      await tunnel.connection();
      await reconnected;
    },
  );

  test("reports maintenance once, also over reconnects, and its end when a later welcome lacks it", async () => {
    const announced: Partial<Welcome> = { maintenance: true };
    await using tunnel = await startScriptedTunnel(origin.port, announced);
    const reports: [isOn: boolean, tunnelId: string][] = [];
    tunnel.agent.on("maintenance", (...report) => reports.push(report));
    const reconnect = async (connection: ScriptedConnection): Promise<ScriptedConnection> => {
      const reconnected = once(tunnel.agent, "reconnected");
      connection.socket.close(CLOSE.going_away, "going_away: why");
      const next = await tunnel.connection();
      await reconnected;
      return next;
    };
    const second = await reconnect(await started(tunnel));
    expect(reports).toEqual([[true, WELCOME.tunnelId]]);
    delete announced.maintenance;
    await reconnect(second);
    expect(reports.slice(1)).toEqual([[false, WELCOME.tunnelId]]);
  });

  test("reports a public URL that has changed as a notice, once", async () => {
    const announced: Partial<Welcome> = {};
    await using tunnel = await startScriptedTunnel(origin.port, announced);
    const notices: string[] = [];
    tunnel.agent.on("notice", (message) => notices.push(message));
    let connection = await started(tunnel);
    for (const url of [WELCOME.url, "https://shop.example", "https://shop.example"]) {
      announced.url = url;
      const reconnected = once(tunnel.agent, "reconnected");
      connection.socket.close(CLOSE.going_away, "going_away: why");
      connection = await tunnel.connection();
      await reconnected;
    }
    expect(notices).toEqual(["visitors now connect to https://shop.example"]);
  });

  test.each(["unauthorized", "duplicate_name", "replaced", "BUDGET_EXCEEDED"] as CloseName[])(
    "does not reconnect after %s, and reports why",
    async (name) => {
      await using tunnel = await startScriptedTunnel(origin.port);
      const connection = await started(tunnel);
      const rejected = once(tunnel.agent, "rejected");
      connection.socket.close(CLOSE[name], `${name}: because of that`);
      expect(await rejected).toMatchObject([{ reason: name, message: "because of that" }]);
    },
  );

  test("finishes requests in flight when the server restarts, refuses new ones, and reconnects", async () => {
    await using tunnel = await startScriptedTunnel(origin.port);
    const connection = await started(tunnel);
    let answer: (() => void) | undefined;
    origin.respond = (_, socket) =>
      void (answer = () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlast"));
    connection.request(1, ["GET", "/", "host", "x"]);
    await vi.waitUntil(() => answer, WAIT_OPTIONS);
    connection.send((writer) => writer.writeText(FRAME.goingAway, 0, 0, "restart"));
    connection.request(2, ["GET", "/", "host", "x"]);
    expect(await connection.waitForOutcome(2)).toEqual({ reset: RESET.refused });
    answer!();
    expect(await connection.waitForOutcome(1)).toEqual({ status: 200, body: "last" });
    await connection.closed;
    origin.respond = () => "HTTP/1.1 204 No Content\r\n\r\n";
    const next = await tunnel.connection();
    next.request(1, ["GET", "/", "host", "x"]);
    expect(await next.waitForOutcome(1)).toEqual({ status: 204, body: "" });
  });

  test("reconnects after an announcement of a restart that is too long to be the reason of a close", async () => {
    await using tunnel = await startScriptedTunnel(origin.port);
    const connection = await started(tunnel);
    const announcement = "the server is restarting ".repeat(10);
    connection.send((writer) => writer.writeText(FRAME.goingAway, 0, 0, announcement));
    expect(await connection.closed).toBe(1000);
    await tunnel.connection();
  });

  test("refuses a request at once when all connections to the local server are in use, and closes those of requests that were reset", async () => {
    await using tunnel = await startScriptedTunnel(origin.port);
    const connection = await started(tunnel);
    let open = 0;
    origin.respond = (_, socket) => {
      open += 1;
      socket.on("close", () => (open -= 1));
    };
    const streams = Array.from({ length: ORIGIN_CONNECTIONS_MAX }, (_, i) => i + 1);
    for (const stream of streams) connection.request(stream, ["GET", "/", "host", "x"]);
    connection.request(9_999, ["GET", "/", "host", "x"]);
    expect(await connection.waitForOutcome(9_999)).toEqual({ reset: RESET.refused });
    await vi.waitUntil(() => open === ORIGIN_CONNECTIONS_MAX, WAIT_OPTIONS);
    connection.send((writer) => {
      for (const stream of streams)
        writer.writeCodeAndText(FRAME.reset, stream, RESET.canceled, "the visitor left");
    });
    await vi.waitUntil(() => open === 0, WAIT_OPTIONS);
    origin.respond = () => OK;
    connection.request(10_000, ["GET", "/", "host", "x"]);
    expect(await connection.waitForOutcome(10_000)).toEqual({ status: 200, body: "ok" });
  });

  test("does not send more than its own window to a server that announces a larger one", async () => {
    await using tunnel = await startScriptedTunnel(origin.port, { streamWindow: 2 ** 40 });
    const connection = await started(tunnel);
    const body = Buffer.alloc(2 * STREAM_WINDOW_BYTES);
    const head = `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`;
    origin.respond = ({ target }) =>
      target === "/" ? OK : Buffer.concat([Buffer.from(head), body]);
    connection.request(1, ["GET", "/large", "host", "x"]);
    expect((await connection.next()).type).toBe(FRAME.response);
    for (let sent = 0; sent < STREAM_WINDOW_BYTES;)
      sent += (await connection.next()).payload.byteLength;
    connection.request(2, ["GET", "/", "host", "x"]);
    expect(await connection.next()).toMatchObject({ type: FRAME.response, stream: 2 });
  });

  test("that finishes its last requests opens no connections to further objects of its tunnel", async () => {
    await using tunnel = await startScriptedTunnel(origin.port);
    const connection = await started(tunnel);
    let finish: (() => void) | undefined;
    origin.respond = ({ target }, socket) => {
      if (target === "/") return OK;
      finish = () => socket.end(OK);
      return undefined;
    };
    connection.request(1, ["GET", "/slow", "host", "x"]);
    await vi.waitUntil(() => finish, WAIT_OPTIONS);
    const closing = tunnel.agent.close();
    const onFurther = vi.fn();
    void tunnel.connection().then(onFurther);
    connection.send((writer) => writer.writeJson(FRAME.status, 0, 0, { shards: 2 }));
    connection.request(2, ["GET", "/", "host", "x"]);
    expect(await connection.waitForOutcome(2)).toMatchObject({ status: 200 });
    finish!();
    await closing;
    expect(onFurther).not.toHaveBeenCalled();
  });

  test("whose uplink is slow sends a short response before the rest of many long ones", async () => {
    await using tunnel = await startScriptedTunnel(origin.port);
    const connection = await started(tunnel);
    const head = `HTTP/1.1 200 OK\r\ncontent-length: ${STREAM_WINDOW_BYTES}\r\n\r\n`;
    const long = Buffer.concat([Buffer.from(head), Buffer.alloc(STREAM_WINDOW_BYTES)]);
    let longRequests = 0;
    let shortRequests = 0;
    origin.respond = ({ target }) => {
      if (target === "/long") longRequests += 1;
      else shortRequests += 1;
      return target === "/long" ? long : OK;
    };
    connection.socket.pause();
    const streams = CONNECTION_WINDOW_BYTES / STREAM_WINDOW_BYTES;
    for (let stream = 1; stream <= streams; stream += 1)
      connection.request(stream, ["GET", "/long", "host", "x"]);
    await vi.waitUntil(() => longRequests === streams, WAIT_OPTIONS);
    connection.request(streams + 1, ["GET", "/short", "host", "x"]);
    await vi.waitUntil(() => shortRequests === 1, WAIT_OPTIONS);
    connection.socket.resume();
    let before = 0;
    for (;;) {
      const frame = await connection.next();
      if (frame.stream > streams) break;
      before += frame.payload.byteLength;
    }
    // Including what the sockets of both ends hold.
    expect(before).toBeLessThan((3 / 4) * CONNECTION_WINDOW_BYTES);
  });

  test("announces that it stops", async () => {
    await using tunnel = await startScriptedTunnel(origin.port);
    const connection = await started(tunnel);
    await tunnel.agent.close();
    expect(connection.socket.readyState).not.toBe(connection.socket.OPEN);
    expect((await connection.next()).type).toBe(FRAME.goingAway);
  });

  test("sends nothing more of a response that the tunnel reset, and accepts late credit for it", async () => {
    await using tunnel = await startScriptedTunnel(origin.port);
    const connection = await started(tunnel);
    const head = `HTTP/1.1 200 OK\r\ncontent-length: ${3 * STREAM_WINDOW_BYTES}\r\n\r\n`;
    origin.respond = () =>
      Buffer.concat([Buffer.from(head), Buffer.alloc(3 * STREAM_WINDOW_BYTES)]);
    connection.request(1, ["GET", "/", "host", "x"]);
    expect((await connection.next()).type).toBe(FRAME.response);
    let sent = 0;
    while (sent < STREAM_WINDOW_BYTES) sent += (await connection.next()).payload.byteLength;
    origin.respond = () => OK;
    connection.send((writer) => {
      writer.writeCodeAndText(FRAME.reset, 1, RESET.canceled, "the visitor left");
      writer.writeCredit(1, STREAM_WINDOW_BYTES);
      writer.writeJson(FRAME.request, FLAG.end, 2, ["GET", "/", "host", "x"]);
    });
    expect(await connection.next()).toMatchObject({ type: FRAME.response, stream: 2 });
  });

  test("does not wait for WebSockets when it is stopped, because they do not end by themselves", async () => {
    const site = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    await once(site, "listening");
    await using tunnel = await startScriptedTunnel((site.address() as AddressInfo).port);
    const connection = await started(tunnel);
    connection.request(1, ["GET", "/", "host", "x"], FLAG.socket);
    expect((await connection.next()).type).toBe(FRAME.response);
    // With this clock it would wait forever.
    vi.spyOn(performance, "now").mockReturnValue(performance.now());
    await tunnel.agent.close();
    site.close();
  });

  test.each([
    ["answers a tunnel that knows it", [CLOSE_CAPABILITY], ["last words", "\x0f\xa2later"]],
    ["answers no other one", [], []],
  ])("whose local server answers a visitor's Close %s", async (_, capabilities, answers) => {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    const accepted = once(server, "connection");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    await using tunnel = await startScriptedTunnel(port, { capabilities });
    const connection = await started(tunnel);
    connection.request(1, ["GET", "/", "host", "shop.localhost"], FLAG.socket);
    const [socket] = (await accepted) as [WebSocket];
    const closed = once(socket, "close");
    expect((await connection.next()).type).toBe(FRAME.response);
    socket.once("message", () => {
      socket.send("last words");
      socket.close(4002, "later");
    });
    connection.send((writer) => {
      writer.writeText(FRAME.text, 0, 1, "bye");
      writer.writeCodeAndText(FRAME.close, 1, 4001, "done");
    });
    for (const answer of answers)
      expect(Buffer.from((await connection.next()).payload).toString("latin1")).toBe(answer);
    await closed;
    connection.request(2, ["GET", "/", "host", "shop.localhost"], FLAG.socket);
    expect(await connection.next()).toMatchObject({ type: FRAME.response, stream: 2 });
    server.close();
  });

  test.each([
    ["", HEARTBEAT_TIMEOUT_MS + 1, 0],
    [", also after the clock was set back", -HOUR_MS, HEARTBEAT_TIMEOUT_MS + 1],
  ])("closes the connection to a silent server, and reconnects%s", async (_, clockMs, passedMs) => {
    await using tunnel = await startScriptedTunnel(origin.port);
    const connection = await started(tunnel);
    const nowMs = performance.now();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + clockMs });
    vi.spyOn(performance, "now").mockReturnValue(nowMs + passedMs);
    expect(await connection.closed).toBe(1006);
    await tunnel.connection();
  });

  test.each(["nonsense", "", "javascript:alert(1)"])(
    "rejects a server that serves the tunnel at the URL %j",
    async (url) => {
      await using tunnel = await startScriptedTunnel(origin.port, { url });
      const rejected = once(tunnel.agent, "rejected");
      tunnel.agent.start();
      await tunnel.connection();
      expect(await rejected).toMatchObject([
        { reason: "protocol_error", message: "the server sent a welcome that can't be read" },
      ]);
    },
  );

  test.each<[string, (connection: { socket: { send(data: Buffer): void } }) => void]>([
    ["half a frame", ({ socket }) => socket.send(Buffer.alloc(5))],
    [
      "an invalid request",
      ({ socket }) => socket.send(Buffer.from("030000000001000000022d31", "hex")),
    ],
  ])("rejects a server that sends %s", async (_, send) => {
    await using tunnel = await startScriptedTunnel(origin.port);
    const connection = await started(tunnel);
    const rejected = once(tunnel.agent, "rejected");
    send(connection);
    expect(await connection.closed).toBe(CLOSE.protocol_error);
    expect(await rejected).toMatchObject([{ reason: "protocol_error" }]);
  });
});
