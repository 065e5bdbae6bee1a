/** What visitors and agents can make a tunnel's object hold: requests in flight, and bytes on their way. */
import { describe, expect, test, vi } from "vitest";
import type { AgentLink } from "../../../../durable-objects/tunnel/agents/agent-link.ts";
import { STRAY_FRAMES_PER_SECOND_MAX } from "../../../../durable-objects/tunnel/stray-frames.ts";
import {
  BufferedBytes,
  ISOLATE_BUFFER_MAX_BYTES,
} from "../../../../durable-objects/tunnel/buffered-bytes.ts";
import {
  Exchange,
  type ExchangeOutcome,
} from "../../../../durable-objects/tunnel/proxy/exchange.ts";
import type { RequestHead } from "../../../../durable-objects/tunnel/proxy/heads.ts";
import {
  IN_FLIGHT_MAX_REQUESTS,
  UNCOUNTED_PLACE,
} from "../../../../durable-objects/tunnel/proxy/in-flight.ts";
import { PacedQueue, Pacer } from "../../../../durable-objects/tunnel/proxy/pacer.ts";
import { ResponseBody } from "../../../../durable-objects/tunnel/proxy/response-body.ts";
import { FLAG, FRAME, RESET } from "../../../../protocol/wire/frames.ts";
import {
  CONNECTION_WINDOW_BYTES,
  FRAME_DATA_MAX_BYTES,
  STREAM_RESERVE_BYTES,
  STREAM_WINDOW_BYTES,
  WIRE_MESSAGE_MAX_BYTES,
} from "../../../../protocol/limits.ts";
import { HELLO, LiveTunnel, type TestAgent } from "../../../harness/workerd/live-tunnel.ts";
import { createRandom } from "../../../harness/random.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

const SOURCE_MAX_REQUESTS = IN_FLIGHT_MAX_REQUESTS / 2;

/** A visitor's request from an address. */
function from(clientIp: string, init: RequestInit = {}): RequestInit {
  return { ...init, cf: { clientIp } };
}

/** Requests that the agent receives and does not answer. */
class UnansweredRequests {
  readonly #visitor = new AbortController();
  readonly #responses: Promise<Response | undefined>[] = [];
  refused = 0;

  constructor(tunnel: LiveTunnel, count: number, address: (index: number) => string) {
    for (let i = 0; i < count; i += 1) {
      const response = tunnel.visit("/never", from(address(i), { signal: this.#visitor.signal }));
      this.#responses.push(
        response.then(
          (answer) => {
            this.refused += 1;
            return answer;
          },
          () => undefined,
        ),
      );
    }
  }

  get first(): Promise<Response | undefined> {
    return Promise.race(this.#responses);
  }

  async leave(): Promise<void> {
    this.#visitor.abort();
    await Promise.all(this.#responses);
  }
}

async function readRequests(agent: TestAgent, count: number): Promise<number[]> {
  const streams: number[] = [];
  while (streams.length < count) streams.push((await agent.nextRequest()).stream);
  return streams;
}

async function expectServed(tunnel: LiveTunnel, agent: TestAgent, address: string): Promise<void> {
  const response = tunnel.visit("/", from(address));
  agent.respond((await agent.nextRequest()).stream, 200, [], "served");
  expect(await (await response).text()).toBe("served");
}

describe("requests in flight", () => {
  test("of one source are at most half of the tunnel's, and those of another are served", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const attack = new UnansweredRequests(
      tunnel,
      SOURCE_MAX_REQUESTS + 5,
      (i) => `2001:db8::${i % 9}`,
    );
    await readRequests(agent, SOURCE_MAX_REQUESTS);
    await vi.waitUntil(() => attack.refused === 5, WAIT_OPTIONS);
    const { status, headers } = (await attack.first)!;
    expect([status, headers.get("underpass-error")]).toEqual([503, "unavailable"]);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    await expectServed(tunnel, agent, "192.0.2.1");
    await attack.leave();
  });

  test("of many sources never exceed the tunnel's limit", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const count = IN_FLIGHT_MAX_REQUESTS + 50;
    const attack = new UnansweredRequests(tunnel, count, (i) => `192.0.${i >> 8}.${i & 255}`);
    await vi.waitUntil(() => agent.pendingFrames + attack.refused === count, WAIT_OPTIONS);
    expect(agent.pendingFrames).toBeLessThanOrEqual(IN_FLIGHT_MAX_REQUESTS);
    expect(agent.pendingFrames).toBeGreaterThan(IN_FLIGHT_MAX_REQUESTS - 5);
    await attack.leave();
  });

  test("are free again when their visitor has disconnected, and the agent is told of each", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    for (let round = 0; round < 2; round += 1) {
      const attack = new UnansweredRequests(tunnel, SOURCE_MAX_REQUESTS, () => "192.0.2.1");
      const streams = new Set(await readRequests(agent, SOURCE_MAX_REQUESTS));
      expect(attack.refused).toBe(0);
      await attack.leave();
      for (let i = 0; i < SOURCE_MAX_REQUESTS; i += 1) {
        const { stream, code } = await agent.nextCode(FRAME.reset);
        expect([streams.delete(stream), code]).toEqual([true, RESET.canceled]);
      }
    }
  });

  test("are free again however a request ends", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const attack = new UnansweredRequests(tunnel, SOURCE_MAX_REQUESTS - 1, () => "192.0.2.1");
    await readRequests(agent, SOURCE_MAX_REQUESTS - 1);
    const large = "x".repeat(3 * FRAME_DATA_MAX_BYTES);
    const endings: Record<string, (stream: number) => void> = {
      whole: (stream) => agent.respond(stream, 200, [], "small"),
      "of more than a frame": (stream) => agent.respond(stream, 200, [], large),
      "without a body": (stream) => agent.respond(stream, 204, [], ""),
      "in two messages": (stream) => {
        agent.respond(stream, 200);
        agent.send((writer) => writer.writeText(FRAME.data, FLAG.end, stream, large));
      },
      truncated: (stream) => {
        agent.respond(stream, 200, ["content-length", "10"]);
        agent.send((writer) => writer.writeText(FRAME.data, 0, stream, "half"));
        agent.send((w) => w.writeCodeAndText(FRAME.reset, stream, RESET.originFailed, ""));
      },
      "with an invalid head": (stream) => agent.respond(stream, 999, [], "x"),
      "of the wrong length": (stream) => agent.respond(stream, 200, ["content-length", "1"], "ab"),
      failed: (stream) =>
        agent.send((w) => w.writeCodeAndText(FRAME.reset, stream, RESET.originTimeout, "")),
    };
    for (const [name, end] of [...Object.entries(endings), ...Object.entries(endings)]) {
      const response = tunnel.visit(`/${encodeURIComponent(name)}`, from("192.0.2.1"));
      let frame = await agent.nextFrame();
      while (frame.type !== FRAME.request) frame = await agent.nextFrame();
      end(frame.stream);
      const { status, body } = await response;
      expect([name, status]).not.toEqual([name, 503]);
      await new Response(body).text().catch(() => undefined);
    }
    await attack.leave();
  });

  test.each([
    ["many tiny headers", Array.from({ length: 256 }, (_, i) => [`x${i}`, ""]).flat(), 256 * 512],
    ["a few large headers", ["x", "a".repeat(100_000)], 100_000],
  ])("whose responses stay open with %s hold at most their share", async (_, pairs, headBytes) => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const visitor = new AbortController();
    const openMax = ISOLATE_BUFFER_MAX_BYTES / 2 / headBytes;
    const open: Response[] = [];
    let refused: Response | undefined;
    while (!refused && open.length <= openMax) {
      const address = `192.0.2.${open.length % 250}`;
      const answer = tunnel.visit("/", from(address, { signal: visitor.signal }));
      agent.respond((await agent.nextRequest()).stream, 200, pairs);
      const response = await answer;
      if (response.status === 200) open.push(response);
      else refused = response;
    }
    expect([refused?.status, refused?.headers.get("underpass-error")]).toEqual([
      503,
      "unavailable",
    ]);
    visitor.abort();
    await vi.waitUntil(() => agent.pendingFrames >= open.length, WAIT_OPTIONS);
  });

  test("that the agent refuses twice are answered with 503", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const response = tunnel.visit("/");
    for (let i = 0; i < 2; i += 1) {
      const { stream } = await agent.nextRequest();
      agent.send((w) => w.writeCodeAndText(FRAME.reset, stream, RESET.refused, "full"));
    }
    const { status, headers } = await response;
    expect([status, headers.get("underpass-error")]).toEqual([503, "unavailable"]);
    expect(headers.has("retry-after")).toBe(true);
  });
});

describe("an agent whose hello has windows of a terabyte", () => {
  async function greedyAgent(tunnel: LiveTunnel): Promise<TestAgent> {
    const agent = await tunnel.connect();
    const windows = { streamWindow: 2 ** 40, connectionWindow: 2 ** 40 };
    agent.send((writer) => writer.writeJson(FRAME.hello, 0, 0, { ...HELLO, ...windows }));
    await agent.next(FRAME.welcome);
    return agent;
  }

  /** Reads data until an upload has nothing more to send. @returns the bytes of each stream. */
  async function readUploads(agent: TestAgent, expected: number): Promise<Map<number, number>> {
    const received = new Map<number, number>();
    let total = 0;
    while (total < expected) {
      const { type, stream, payload } = await agent.nextFrame();
      if (type !== FRAME.data) continue;
      total += payload.byteLength;
      received.set(stream, (received.get(stream) ?? 0) + payload.byteLength);
    }
    expect(total).toBe(expected);
    return received;
  }

  test("is sent no more of one upload than the service's own window", async () => {
    const tunnel = new LiveTunnel();
    const agent = await greedyAgent(tunnel);
    const visitor = new AbortController();
    const body = new Uint8Array(2 * STREAM_WINDOW_BYTES);
    const response = tunnel.visit("/", { method: "POST", body, signal: visitor.signal });
    await readUploads(agent, STREAM_WINDOW_BYTES);
    await expectServed(tunnel, agent, "192.0.2.1");
    visitor.abort();
    await response.catch(() => undefined);
  });

  test("is sent no more of all uploads together than the service's own windows", async () => {
    const tunnel = new LiveTunnel();
    const agent = await greedyAgent(tunnel);
    const visitor = new AbortController();
    const uploads = 40;
    const body = new Uint8Array(2 * STREAM_WINDOW_BYTES);
    const init = { method: "POST", body, signal: visitor.signal };
    const responses = Array.from({ length: uploads }, () => tunnel.visit("/", init));
    const atMost = CONNECTION_WINDOW_BYTES + uploads * STREAM_RESERVE_BYTES;
    const received = await readUploads(agent, atMost);
    expect(Math.max(...received.values())).toBeLessThanOrEqual(STREAM_WINDOW_BYTES);
    expect(agent.pendingFrames).toBe(0);
    visitor.abort();
    await Promise.allSettled(responses);
  });
});

describe("responses that their visitors do not read", () => {
  /** Visits whose responses have begun. */
  async function beginResponses(tunnel: LiveTunnel, agent: TestAgent, count: number) {
    const bodies: ReadableStream[] = [];
    const streams: number[] = [];
    for (let i = 0; i < count; i += 1) {
      const response = tunnel.visit("/", from("192.0.2.1"));
      const { stream } = await agent.nextRequest();
      agent.respond(stream, 200, ["content-length", String(10 * STREAM_WINDOW_BYTES)]);
      bodies.push((await response).body!);
      streams.push(stream);
    }
    return { bodies, streams };
  }

  const TUNNEL_MAX_BYTES = ISOLATE_BUFFER_MAX_BYTES / 2;

  test("hold at most half of the isolate's buffer, although their agent ignores the connection's window", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const count = 40;
    const { bodies, streams } = await beginResponses(tunnel, agent, count);
    const chunk = new Uint8Array(FRAME_DATA_MAX_BYTES);
    for (const stream of streams)
      for (let sent = 0; sent < STREAM_WINDOW_BYTES; sent += chunk.byteLength)
        agent.send((writer) => writer.writeBytes(FRAME.data, 0, stream, chunk));
    // The pipe between the object and each visitor takes one chunk.
    const heldBytes = STREAM_WINDOW_BYTES - FRAME_DATA_MAX_BYTES;
    const mostHeld = Math.ceil(TUNNEL_MAX_BYTES / heldBytes);
    for (let i = 0; i < count - mostHeld; i += 1)
      expect((await agent.nextCode(FRAME.reset)).code).toBe(RESET.canceled);
    await Promise.allSettled(bodies.map((body) => body.cancel()));
    for (let i = 0; i < mostHeld; i += 1) await agent.nextCode(FRAME.reset);
    await expectServed(tunnel, agent, "192.0.2.1");
  });

  test("are cut when they arrive in a hundred thousand frames of one byte", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const { bodies, streams } = await beginResponses(tunnel, agent, 2);
    const byte = new Uint8Array(1);
    for (const stream of streams)
      for (let sent = 0; sent < 90_000;)
        agent.send((writer) => {
          while (writer.length < WIRE_MESSAGE_MAX_BYTES - 100) {
            writer.writeBytes(FRAME.data, 0, stream, byte);
            sent += 1;
          }
        });
    expect((await agent.nextCode(FRAME.reset)).code).toBe(RESET.canceled);
    await Promise.allSettled(bodies.map((body) => body.cancel()));
  });
});

test("a body that arrives in tiny frames is written in a few parts", async () => {
  const buffered = new BufferedBytes();
  const onWritten = vi.fn<(bytes: number) => void>();
  const body = new ResponseBody(null, {
    queue: new PacedQueue(new Pacer(1_000)),
    buffered,
    truncationSignal: "abort",
    onWritten,
    onDiscarded: () => undefined,
    onClosed: () => undefined,
  });
  const sent = Uint8Array.from({ length: 20_000 }, (_, at) => at);
  for (const byte of sent) body.write(Uint8Array.of(byte));
  body.end();
  expect(await new Response(body.readable).bytes()).toEqual(sent);
  expect(onWritten.mock.calls.length).toBeLessThan(20);
  expect(buffered.held).toBe(0);
});

test("a response that is held already reaches its visitor, although other bytes have filled the buffer since", async () => {
  const buffered = new BufferedBytes();
  const afterMessage: (() => void)[] = [];
  const link = {
    pace: { toAgent: new Pacer(1_000), toVisitors: new Pacer(1_000) },
    buffered,
    afterMessage: (run: () => void) => afterMessage.push(run),
    open: () => 1,
    sendRequest: () => undefined,
    send: () => undefined,
    finish: () => undefined,
  };
  const { promise, resolve } = Promise.withResolvers<ExchangeOutcome>();
  const exchange = new Exchange(
    link as unknown as AgentLink,
    {
      request: new Request("https://shop.example/"),
      requestId: "0190",
      head: { isHeadMethod: false } as RequestHead,
      recording: null,
      place: UNCOUNTED_PLACE,
    },
    { usage: { countOut: () => undefined } as never, onCloudflare: false, onDone: () => undefined },
    resolve,
  );
  const receive = (type: number, payload: Uint8Array, flags = 0) =>
    exchange.onFrame({ type, flags, stream: 1, payload });
  receive(FRAME.response, new TextEncoder().encode("[200]"));
  const body = createRandom(3).bytes(2 * FRAME_DATA_MAX_BYTES);
  receive(FRAME.data, body.slice(0, FRAME_DATA_MAX_BYTES));
  receive(FRAME.data, body.slice(FRAME_DATA_MAX_BYTES), FLAG.end);
  buffered.add(ISOLATE_BUFFER_MAX_BYTES);
  for (const run of afterMessage) run();
  const received = await ((await promise) as Response).bytes();
  expect(received.byteLength).toBe(body.byteLength);
  expect(received.every((byte, i) => byte === body[i])).toBe(true);
  buffered.add(-ISOLATE_BUFFER_MAX_BYTES);
  await vi.waitUntil(() => buffered.held === 0, WAIT_OPTIONS);
});

test("a flood of credit that changes nothing does not keep the tunnel from serving", async () => {
  const tunnel = new LiveTunnel();
  const agent = await tunnel.agent();
  const visitor = new AbortController();
  const body = new Uint8Array(STREAM_WINDOW_BYTES + 1);
  const upload = tunnel.visit("/", { method: "POST", body, signal: visitor.signal });
  const { stream } = await agent.nextRequest();
  for (let sent = 0; sent < STREAM_WINDOW_BYTES;)
    sent += (await agent.next(FRAME.data)).payload.byteLength;
  agent.send((writer) => {
    for (let i = 0; i < STRAY_FRAMES_PER_SECOND_MAX / 2; i += 1) {
      writer.writeCredit(stream, 0);
      writer.writeCredit(stream + 1, 1);
    }
  });
  await expectServed(tunnel, agent, "192.0.2.1");
  visitor.abort();
  await upload.catch(() => undefined);
});
