/** Clients of `underpass connect`: the rules that they must follow, and the bounds of memory. */

import { afterEach, describe, expect, test, vi } from "vitest";
import { CLOSE } from "../../../../protocol/wire/close-codes.ts";
import { CLIENT_STREAM, FLAG, FRAME, PING, PONG, RESET } from "../../../../protocol/wire/frames.ts";
import { STREAM_RESERVE_BYTES, STREAM_WINDOW_BYTES } from "../../../../protocol/limits.ts";
import {
  CLIENTS_MAX,
  CONNECT_WINDOW_MIN_BYTES,
  CONNECT_WINDOWS_MAX_BYTES,
} from "../../../../durable-objects/tunnel/tcp/clients.ts";
import { STRAY_FRAMES_PER_SECOND_MAX } from "../../../../durable-objects/tunnel/stray-frames.ts";

import { createRandom } from "../../../harness/random.ts";
import {
  isEqual,
  receive,
  sendData,
  TcpTunnel,
  type TestClient,
} from "../../../harness/workerd/tcp-tunnel.ts";

afterEach(() => void vi.useRealTimers());

async function connected() {
  const tunnel = new TcpTunnel();
  const agent = await tunnel.agent();
  return { tunnel, agent, ...(await tunnel.client(agent)) };
}

describe("a client must", () => {
  test.each([
    ["say hello first", () => null, CLOSE.protocol_error],
    ["have a window as large as the agent's", { streamWindow: 1000 }, CLOSE.protocol_error],
    ["speak this version", { protocol: 2 }, CLOSE.unsupported_version],
  ])("%s", async (_, hello, code) => {
    const tunnel = new TcpTunnel();
    await tunnel.agent();
    const client = await tunnel.connectClient();
    if (typeof hello === "function") client.write("no hello");
    else client.hello(hello);
    expect((await client.closed).code).toBe(code);
  });

  test("keep within its window", async () => {
    const { agent, client } = await connected();
    // The agent grants nothing: bytes beyond its window wait in the object, within the client's window.
    client.write(new Uint8Array(STREAM_WINDOW_BYTES));
    await receive(agent, STREAM_WINDOW_BYTES);
    client.write(new Uint8Array(STREAM_WINDOW_BYTES));
    client.write(new Uint8Array(STREAM_WINDOW_BYTES));
    const { others } = await receiveUntilReset(client);
    expect(others).toContain(FRAME.credit);
    expect(await agent.nextCode(FRAME.reset)).toMatchObject({ code: RESET.protocolError });
  });

  test.each<[string, (client: TestClient) => void]>([
    ["send frames", (client) => client.socket.send("text")],
    ["send whole frames", (client) => client.socket.send(new Uint8Array([5, 0]))],
    [
      "keep to its stream",
      (client) => client.send((writer) => writer.writeText(FRAME.data, 0, 2, "x")),
    ],
    ["grant no more than it was sent", (client) => client.credit(1)],
    [
      "not send very many empty frames",
      (client) =>
        client.send((writer) => {
          for (let n = 0; n <= STRAY_FRAMES_PER_SECOND_MAX / 2; n++) {
            writer.writeText(FRAME.data, 0, CLIENT_STREAM, "");
            writer.writeCredit(CLIENT_STREAM, 0);
          }
        }),
    ],
    [
      "send nothing behind its end",
      (client) => {
        client.write("x", FLAG.end);
        client.write("y");
      },
    ],
  ])("%s", async (_, act) => {
    const { client } = await connected();
    act(client);
    expect(await client.resetCode()).toBe(RESET.protocolError);
    expect((await client.closed).code).toBe(1000);
  });
});

async function receiveUntilReset(client: TestClient) {
  const others: number[] = [];
  for (;;) {
    const frame = await client.nextFrame();
    if (frame.type === FRAME.reset) return { others };
    others.push(frame.type);
  }
}

describe("the used memory", () => {
  test("for a slow agent is bounded by the client's window, and is sent when there is credit", async () => {
    const { agent, client, stream } = await connected();
    const data = createRandom(6).bytes(2 * STREAM_WINDOW_BYTES - STREAM_RESERVE_BYTES);
    client.write(data.subarray(0, STREAM_WINDOW_BYTES));
    const first = await receive(agent, STREAM_WINDOW_BYTES);
    client.write(data.subarray(STREAM_WINDOW_BYTES));
    agent.send((writer) => writer.writeCredit(stream, STREAM_WINDOW_BYTES));
    const rest = await receive(agent, data.byteLength - STREAM_WINDOW_BYTES);
    expect(isEqual(first.bytes, data.subarray(0, STREAM_WINDOW_BYTES))).toBe(true);
    expect(isEqual(rest.bytes, data.subarray(STREAM_WINDOW_BYTES))).toBe(true);
  });

  test("for a slow client is not granted to the agent, which must respect its window", async () => {
    const { agent, client, stream } = await connected();
    sendData(agent, stream, new Uint8Array(STREAM_WINDOW_BYTES / 2));
    sendData(agent, stream, new Uint8Array(STREAM_WINDOW_BYTES / 2));
    await receive(client, STREAM_WINDOW_BYTES);
    expect(agent.pendingFrames).toBe(0);
    sendData(agent, stream, "x");
    expect((await agent.closed).code).toBe(CLOSE.protocol_error);
    expect(await client.resetCode()).toBe(RESET.agentOffline);
  });

  test("for all clients of a tunnel is bounded by the agent's connection window", async () => {
    const tunnel = new TcpTunnel();
    const agent = await tunnel.agent();
    const reserve = 17 * STREAM_RESERVE_BYTES;
    let left = CONNECT_WINDOWS_MAX_BYTES + reserve;
    for (let clients = 0; clients < 17; clients++) {
      const { stream } = await tunnel.client(agent);
      for (let sent = 0; sent < STREAM_WINDOW_BYTES && left > 0;) {
        const bytes = Math.min(STREAM_WINDOW_BYTES / 2, left, STREAM_WINDOW_BYTES - sent);
        sendData(agent, stream, new Uint8Array(bytes));
        sent += bytes;
        left -= bytes;
      }
    }
    const { stream } = await tunnel.client(agent);
    sendData(agent, stream, new Uint8Array(STREAM_RESERVE_BYTES + 1));
    expect((await agent.closed).code).toBe(CLOSE.protocol_error);
  });

  test("for all clients is bounded by the sum of their windows, however many connect", async () => {
    const tunnel = new TcpTunnel();
    await tunnel.agent();
    const windows: number[] = [];
    const clients = [];
    for (let at = 0; at < CLIENTS_MAX; at++) {
      const client = await tunnel.connectClient();
      clients.push(client);
      client.hello();
      const { payload } = await client.next(FRAME.welcome);
      windows.push(
        (JSON.parse(new TextDecoder().decode(payload)) as { streamWindow: number }).streamWindow,
      );
    }
    expect(windows[0]).toBe(STREAM_WINDOW_BYTES);
    expect(Math.min(...windows)).toBe(CONNECT_WINDOW_MIN_BYTES);
    const sum = windows.reduce((total, window) => total + window, 0);
    expect(sum).toBeLessThanOrEqual(CONNECT_WINDOWS_MAX_BYTES);
    await expect(tunnel.connectClient()).rejects.toMatchObject({ code: "rate_limited" });
  });

  test("does not grow with the number of frames", async () => {
    const { agent, client, stream } = await connected();
    client.write(new Uint8Array(STREAM_WINDOW_BYTES));
    await receive(agent, STREAM_WINDOW_BYTES);
    const data = createRandom(7).bytes(20_000);
    for (let at = 0; at < data.byteLength; at += 2_000) {
      client.send((writer) => {
        for (const byte of data.subarray(at, at + 2_000))
          writer.writeBytes(FRAME.data, 0, CLIENT_STREAM, new Uint8Array([byte]));
      });
    }
    // This response follows all of them.
    client.socket.send(PING);
    expect(await client.nextMessage()).toBe(PONG);
    agent.send((writer) => writer.writeCredit(stream, STREAM_WINDOW_BYTES));
    const { bytes } = await receive(agent, data.byteLength);
    expect(isEqual(bytes, data)).toBe(true);
  });
});
