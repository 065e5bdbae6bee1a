/** Clients of `underpass connect`: bytes in both directions, windows, and hibernation. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { CLOSE } from "../../../../protocol/wire/close-codes.ts";
import { CLIENT_STREAM, FLAG, FRAME, RESET } from "../../../../protocol/wire/frames.ts";
import {
  CREDIT_GRANT_BYTES,
  HEARTBEAT_TIMEOUT_MS,
  STREAM_WINDOW_BYTES,
} from "../../../../protocol/limits.ts";

import { LEFT_MS, RefusedError } from "../../../harness/workerd/live-tunnel.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { createRandom } from "../../../harness/random.ts";
import {
  isEqual,
  nextCredit,
  receive,
  sendData,
  TCP_HELLO,
  TcpTunnel,
} from "../../../harness/workerd/tcp-tunnel.ts";

afterEach(() => void vi.useRealTimers());

async function connected() {
  const tunnel = new TcpTunnel();
  const agent = await tunnel.agent();
  return { tunnel, agent, ...(await tunnel.client(agent)) };
}

const settings = (version: number, allowedCidrs: string[] | null) => ({
  version,
  realm: "shop",
  basicAuth: null,
  policy: null,
  allowedCidrs,
});

const HELLO_WITHOUT = {
  protocol: 1,
  agent: "old/1",
  capabilities: ["websocket"],
  streamWindow: STREAM_WINDOW_BYTES,
  connectionWindow: 16 * STREAM_WINDOW_BYTES,
};

describe("a client's connection", () => {
  test("reaches the agent with its address, and carries bytes both ways", async () => {
    const { agent, client, stream, peer } = await connected();
    expect(peer).toEqual({ address: "192.0.2.7", port: 0 });
    client.write("up");
    expect(await agent.next(FRAME.data)).toMatchObject({ stream, flags: 0 });
    sendData(agent, stream, "down");
    expect(await client.nextData()).toEqual({ text: "down", isLast: false });
  });

  test.each([
    ["localhost:80", 80, 80],
    ["unix:/run/db.sock", 80, undefined],
    [undefined, 80, undefined],
    [undefined, 5432, 5432],
  ])("to the local server %s with port %i is told the port %s", async (local, localPort, told) => {
    const tunnel = new TcpTunnel();
    const hello = { ...TCP_HELLO, ...(local !== undefined && { local }) };
    const { client } = await tunnel.client(await tunnel.agent({}, hello), { localPort });
    expect(client.welcomed?.localPort).toBe(told);
  });

  test("can end in one direction and continue in the other", async () => {
    const { agent, client, stream } = await connected();
    client.write("question", FLAG.end);
    expect(await agent.nextData()).toEqual({ text: "question", isLast: true });
    sendData(agent, stream, "answer");
    sendData(agent, stream, "", FLAG.end);
    expect(await client.nextData()).toEqual({ text: "answer", isLast: false });
    expect(await client.nextData()).toEqual({ text: "", isLast: true });
    client.socket.close(1000);
    expect((await client.closed).code).toBe(1000);
    expect(agent.pendingFrames).toBe(0);
  });

  test("carries megabytes both ways unchanged, with credit in both directions", async () => {
    const { agent, client, stream } = await connected();
    const data = createRandom(5).bytes(3 * STREAM_WINDOW_BYTES);
    const half = STREAM_WINDOW_BYTES / 2;
    for (let at = 0; at < data.byteLength; at += half) {
      client.write(data.subarray(at, at + half));
      const up = await receive(agent, half);
      expect(isEqual(up.bytes, data.subarray(at, at + half))).toBe(true);
      agent.send((writer) => writer.writeCredit(stream, half));
      sendData(agent, stream, up.bytes);
      // Credit for the upload arrives between the frames of the download.
      expect(isEqual((await receive(client, half)).bytes, up.bytes)).toBe(true);
      client.credit(half);
      expect(await nextCredit(agent)).toEqual({ stream, bytes: half });
    }
  });

  test("is reset for the agent when the client resets it, closes early or is lost", async () => {
    const tunnel = new TcpTunnel();
    const agent = await tunnel.agent();
    const broken = await tunnel.client(agent);
    broken.client.send((writer) =>
      writer.writeCodeAndText(FRAME.reset, CLIENT_STREAM, 1, "reset by peer"),
    );
    expect(await agent.nextCode(FRAME.reset)).toMatchObject({
      stream: broken.stream,
      code: RESET.canceled,
    });
    expect((await broken.client.closed).code).toBe(1000);
    const early = await tunnel.client(agent);
    early.client.write("half", FLAG.end);
    await agent.nextData();
    early.client.socket.close(1000);
    expect(await agent.nextCode(FRAME.reset)).toMatchObject({
      stream: early.stream,
      code: RESET.canceled,
    });
  });

  test("is reset for the client with the agent's code", async () => {
    const { agent, client, stream } = await connected();
    agent.send((writer) =>
      writer.writeCodeAndText(FRAME.reset, stream, RESET.originUnreachable, "refused"),
    );
    expect(await client.nextCode(FRAME.reset)).toEqual({
      stream: CLIENT_STREAM,
      code: RESET.originUnreachable,
      text: "refused",
    });
    expect((await client.closed).code).toBe(1000);
  });

  test("is reset with agentOffline when the agent disconnects or does not support such streams", async () => {
    const { tunnel, agent, client } = await connected();
    agent.send((writer) => writer.writeText(FRAME.goingAway, 0, 0, "bye"));
    agent.socket.close(1000);
    expect(await client.resetCode()).toBe(RESET.agentOffline);
    const second = await tunnel.connectClient();
    second.hello();
    expect(await second.resetCode()).toBe(RESET.agentOffline);
    await tunnel.agent({}, { ...HELLO_WITHOUT });
    const old = await tunnel.connectClient();
    old.hello();
    expect(await old.resetCode()).toBe(RESET.agentOffline);
  });

  test("waits for an agent that disconnected recently", async () => {
    const { tunnel, agent } = await connected();
    agent.socket.close(1011, "lost");
    await vi.waitFor(
      async () => expect(await tunnel.stub.getPresence()).toMatchObject({ agents: [] }),
      WAIT_OPTIONS,
    );
    const client = await tunnel.connectClient();
    client.hello();
    const back = await tunnel.agent();
    await back.next(FRAME.connect);
    await client.next(FRAME.welcome);
  });

  test("is refused by a tunnel that is stopped, retired or full, and by its allowlist", async () => {
    const tunnel = new TcpTunnel();
    const refusal = async (address = "192.0.2.7") => {
      const error: unknown = await tunnel
        .connectClient({ address })
        .catch((thrown: unknown) => thrown);
      return error instanceof RefusedError ? error.code : null;
    };
    await tunnel.agent();
    await tunnel.stub.publishAccessSettings(settings(1, ["192.0.2.0/24", "2001:db8::/32"]));
    expect(await refusal("192.0.2.9")).toBe(null);
    expect(await refusal("::ffff:192.0.2.9")).toBe(null);
    expect(await refusal("2001:db8::1")).toBe(null);
    expect(await refusal("198.51.100.1")).toBe("forbidden");
    expect(await refusal("")).toBe("forbidden");
    await tunnel.stub.setStopState({ version: 2, isStopped: true });
    expect(await refusal()).toBe("conflict");
    await tunnel.stub.retire();
    expect(await refusal()).toBe("tunnel_not_found");
  });

  test("ends when its address is removed from the allowlist", async () => {
    const { tunnel, agent, client, stream } = await connected();
    const other = await tunnel.client(agent, { address: "198.51.100.1" });
    await tunnel.stub.publishAccessSettings(settings(1, ["192.0.2.7/32"]));
    expect((await other.client.closed).code).toBe(CLOSE.forbidden);
    expect(await agent.nextCode(FRAME.reset)).toMatchObject({ stream: other.stream });
    client.write("still here");
    expect((await agent.next(FRAME.data)).stream).toBe(stream);
  });

  test("ends when its token is revoked or expires", async () => {
    const { tunnel, agent, client } = await connected();
    const tokenExpiresAtMs = Date.now() + LEFT_MS;
    const other = await tunnel.client(agent, { tokenNonce: "token-d", tokenExpiresAtMs });
    await tunnel.stub.disconnectClients(["token-a", "token-c"]);
    expect((await client.closed).code).toBe(CLOSE.unauthorized);
    await tunnel.runAlarmAt(tokenExpiresAtMs);
    expect((await other.client.closed).code).toBe(CLOSE.unauthorized);
  });

  test("is closed when it is silent, and stays open while it sends heartbeats", async () => {
    const { tunnel, agent, client, stream } = await connected();
    const silent = await tunnel.client(agent);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + HEARTBEAT_TIMEOUT_MS + 1 });
    sendData(agent, stream, "alive");
    await client.nextData();
    client.write("alive");
    await agent.next(FRAME.data);
    await runDurableObjectAlarm(tunnel.stub);
    expect((await silent.client.closed).code).toBe(CLOSE.heartbeat_timeout);
    expect((await agent.nextCode(FRAME.reset)).stream).toBe(silent.stream);
    client.write("still");
    await agent.next(FRAME.data);
  });
});

describe("a tunnel that hibernated", () => {
  test("continues its clients' streams, in both directions and to their end", async () => {
    const { tunnel, agent, client, stream } = await connected();
    const other = await tunnel.client(agent);
    await tunnel.sleep();
    client.write("up");
    expect(await agent.next(FRAME.data)).toMatchObject({ stream });
    sendData(agent, other.stream, "down");
    expect(await other.client.nextData()).toEqual({ text: "down", isLast: false });
    await tunnel.sleep();
    client.write("", FLAG.end);
    expect(await agent.next(FRAME.data)).toMatchObject({ stream, flags: FLAG.end });
    await tunnel.sleep();
    sendData(agent, stream, "last", FLAG.end);
    expect(await client.nextData()).toEqual({ text: "last", isLast: true });
    await tunnel.sleep();
    other.client.socket.close(1000);
    expect(await agent.nextCode(FRAME.reset)).toMatchObject({ stream: other.stream });
    client.socket.close(1000);
    expect((await client.closed).code).toBe(1000);
  });

  test("restores its windows exactly", async () => {
    const { tunnel, agent, client, stream } = await connected();
    client.write(new Uint8Array(STREAM_WINDOW_BYTES));
    await receive(agent, STREAM_WINDOW_BYTES);
    sendData(agent, stream, new Uint8Array(STREAM_WINDOW_BYTES / 2));
    await receive(client, STREAM_WINDOW_BYTES / 2);
    await tunnel.sleep();
    // The agent has granted nothing: these bytes wait for its credit, and the credit is not a violation.
    client.write("waits");
    client.credit(STREAM_WINDOW_BYTES / 2);
    expect(await nextCredit(agent)).toEqual({ stream, bytes: STREAM_WINDOW_BYTES / 2 });
    expect(agent.pendingFrames).toBe(0);
    agent.send((writer) => writer.writeCredit(stream, STREAM_WINDOW_BYTES));
    expect(await agent.nextData()).toEqual({ text: "waits", isLast: false });
    sendData(agent, stream, new Uint8Array(STREAM_WINDOW_BYTES));
    await receive(client, STREAM_WINDOW_BYTES);
    await tunnel.sleep();
    sendData(agent, stream, "x");
    expect((await agent.closed).code).toBe(CLOSE.protocol_error);
  });

  test("resets its clients when it wakes without their agent", async () => {
    const { tunnel, client } = await connected();
    await tunnel.sleep();
    await tunnel.agent();
    expect(await client.resetCode()).toBe(RESET.agentOffline);
  });
});

test("connections and bytes are counted, and charged to the agent's token", async () => {
  const { tunnel, agent, client, stream } = await connected();
  client.write("12345");
  await agent.next(FRAME.data);
  sendData(agent, stream, "123");
  await client.nextData();
  const report = await tunnel.stub.sendReport();
  expect(report).toMatchObject({ bytesIn: 5, bytesOut: 3, requests: 1 });
  expect(report?.counters).toMatchObject({ "requests:tcp": 1 });
  expect(report?.traffic[0]).toMatchObject({ requests: 1, bytesIn: 5, bytesOut: 3 });
  expect(report?.spending).toMatchObject([{ tokenNonce: "token-a", bytes: 8, requests: 1 }]);
});

test("streams are limited to the rate of the agent's token", async () => {
  const tunnel = new TcpTunnel();
  const agent = await tunnel.agent({ bandwidthLimitMbps: 8 });
  const { client, stream } = await tunnel.client(agent);
  const startedAtMs = Date.now();
  sendData(agent, stream, new Uint8Array(STREAM_WINDOW_BYTES / 2));
  sendData(agent, stream, new Uint8Array(STREAM_WINDOW_BYTES / 2), FLAG.end);
  const { bytes } = await receive(client);
  expect(bytes.byteLength).toBe(STREAM_WINDOW_BYTES);
  // A megabyte a second, less the burst that may pass at once.
  expect(Date.now() - startedAtMs).toBeGreaterThan(700);
});

test("the agent gets the remaining credit when the client closes without granting it", async () => {
  const { agent, client, stream } = await connected();
  client.write("", FLAG.end);
  await agent.next(FRAME.data);
  sendData(agent, stream, new Uint8Array(2 * CREDIT_GRANT_BYTES), FLAG.end);
  await receive(client);
  client.socket.close(1000);
  expect(await nextCredit(agent)).toEqual({ stream, bytes: 2 * CREDIT_GRANT_BYTES });
});
