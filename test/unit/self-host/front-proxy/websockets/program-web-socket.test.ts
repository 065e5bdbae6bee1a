/** The WebSockets of programs through the front proxy, to a server that each test plays. */
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { ACKNOWLEDGED_HEADER } from "../../../../../protocol/front-proxy/acknowledgements.ts";
import { PROGRAM_UNREAD_MAX_MS, STALLED_MS } from "../../../../../self-host/front-proxy/limits.ts";
import { FRAMES_IN_FLIGHT_MAX } from "../../../../../self-host/front-proxy/queue/workerd-queues.ts";
import type { ConnectionEnd } from "../../../../harness/connection-end.ts";
import { FrontProxyStage, GET, OK, UPGRADE } from "../../../../harness/front-proxy-stage.ts";
import { WAIT_OPTIONS } from "../../../../harness/timeouts.ts";

let stage: FrontProxyStage;

beforeAll(async () => {
  stage = await FrontProxyStage.start();
});
afterAll(() => stage.stop());
afterEach(() => stage.clear());

describe("the WebSocket of a program, such as an agent,", () => {
  const SWITCHED = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";
  const SWITCHED_FOR_VISITOR = SWITCHED.replace(
    "\r\n\r\n",
    `\r\n${ACKNOWLEDGED_HEADER}: 1\r\n\r\n`,
  );
  /** A frame of a binary message, or of its continuation, with a mask of zeros. */
  const buildPart = (bytes: number, opcode: 0 | 2, isFinal: boolean) =>
    String.fromCharCode((isFinal ? 0x80 : 0) | opcode, 0x80 | 126, bytes >> 8, bytes & 255) +
    "\0\0\0\0" +
    "a".repeat(bytes);

  async function connectProgram(
    index: number,
    accepted = SWITCHED,
  ): Promise<[ConnectionEnd, ConnectionEnd]> {
    const program = await stage.visit();
    program.send(UPGRADE);
    const origin = await stage.server(index);
    await origin.waitFor("websocket");
    origin.send(accepted);
    await program.waitFor("101");
    return [program, origin];
  }

  test("passes unchanged, and may hold a share of the memory for incomplete messages", async () => {
    const [program, origin] = await connectProgram(0);
    const message = buildPart(900, 2, false) + buildPart(90, 0, true);
    for (let n = 0; n < 4; n += 1) program.send(message);
    const [another, anotherOrigin] = await connectProgram(1);
    another.send(message + buildPart(900, 2, false));
    await Promise.all([origin.waitFor(message.repeat(4)), anotherOrigin.waitFor(message)]);
    expect([program.isClosed, another.isClosed]).toEqual([false, false]);
  });

  test.each([
    ["program", SWITCHED],
    ["visitor", SWITCHED_FOR_VISITOR],
  ] as const)(
    "has few frames in flight until the server has read them: %s",
    async (kind, accepted) => {
      const [program, origin] = await connectProgram(0, accepted);
      const inFlightMax = FRAMES_IN_FLIGHT_MAX[kind];
      const { probe } = stage;
      const { promise: hasRead, resolve: read } = Promise.withResolvers<void>();
      stage.probe = () => hasRead;
      onTestFinished(() => void (stage.probe = probe));
      const before = origin.received.length;
      const frame = buildPart(200, 2, true);
      program.send(frame.repeat(10 * inFlightMax));
      const countReceived = () => (origin.received.length - before) / frame.length;
      await vi.waitUntil(() => countReceived() > 0, WAIT_OPTIONS);
      const other = await stage.visit();
      other.send(GET);
      (await stage.server(1)).send(OK);
      await other.waitFor("ok");
      // One more, because the first frame of a connection always passes.
      expect(countReceived()).toBeLessThanOrEqual(inFlightMax + 1);
      read();
      await origin.waitFor(frame.repeat(10 * inFlightMax));
    },
  );

  /** Sends more than the program, which reads nothing, and the kernel take. */
  async function fill(program: ConnectionEnd, origin: ConnectionEnd): Promise<void> {
    program.socket.pause();
    const chunk = Buffer.alloc(1024 * 1024);
    let sent = 0;
    while (origin.socket.write(chunk) || sent < 8) sent += 1;
    await vi.waitUntil(() => !stage.connections[0]!.isFlushed, WAIT_OPTIONS);
  }

  test.each([
    ["program", SWITCHED],
    ["visitor", SWITCHED_FOR_VISITOR],
  ] as const)(
    "is not read from while it reads nothing, and loses nothing by that: %s",
    async (kind, accepted) => {
      const [program, origin] = await connectProgram(0, accepted);
      await fill(program, origin);
      const laterMs = performance.now() + 10 * STALLED_MS[kind];
      const clock = vi.spyOn(performance, "now").mockReturnValue(laterMs);
      const message = buildPart(900, 2, true);
      const messages = message.repeat(10_000);
      const before = origin.received.length;
      program.send(messages);
      const other = await stage.visit();
      for (let n = 1; n <= 20; n += 1) {
        other.send(GET);
        const answered = await stage.server(1);
        await vi.waitUntil(() => answered.received.split("GET ").length > n, WAIT_OPTIONS);
        answered.send(OK);
        await vi.waitUntil(() => other.received.split("200 OK").length > n, WAIT_OPTIONS);
      }
      expect(origin.received.length - before).toBeLessThan(messages.length / 2);
      clock.mockRestore();
      program.socket.resume();
      const countReceived = () => origin.received.split(message).length - 1;
      await vi.waitUntil(() => countReceived() === 10_000, WAIT_OPTIONS);
    },
  );

  test("is reset when it has read nothing for a minute", async () => {
    const [program, origin] = await connectProgram(0);
    await fill(program, origin);
    stage.passTime(PROGRAM_UNREAD_MAX_MS - 1_000);
    expect(stage.closed).toBe(0);
    stage.passTime(PROGRAM_UNREAD_MAX_MS + 1_000);
    await vi.waitUntil(() => stage.closed === 1, WAIT_OPTIONS);
  });

  test("is reset when its source holds more incomplete messages", async () => {
    const [first] = await connectProgram(0);
    const [second, origin] = await connectProgram(1);
    first.send(buildPart(900, 2, false));
    await stage.arrived[0]!.waitFor("a".repeat(900));
    second.send(buildPart(200, 2, false));
    await vi.waitUntil(() => second.isClosed, WAIT_OPTIONS);
    await vi.waitUntil(() => origin.hasEnded, WAIT_OPTIONS);
    expect(first.isClosed).toBe(false);
  });

  test("is reset when its incomplete message has more frames than bytes", async () => {
    const [program] = await connectProgram(0);
    program.send(buildPart(0, 2, false) + buildPart(0, 0, false).repeat(20));
    await vi.waitUntil(() => program.isClosed, WAIT_OPTIONS);
  });

  test.each(["server", "program"])(
    "ends once a Close has passed in both directions, first that of the %s",
    async (first) => {
      const [program, origin] = await connectProgram(0);
      const server = { end: origin, message: "\x82\x02\x88\0", close: "\x88\x02\x0f\xa0" };
      const masked = { message: "\x82\x82\0\0\0\0\x88\0", close: "\x88\x82\0\0\0\0\x0f\xa0" };
      const sides = [server, { end: program, ...masked }] as const;
      const [one, other] = first === "server" ? sides : ([sides[1], sides[0]] as const);
      one.end.send(one.message + one.close);
      await other.end.waitFor(one.message + one.close);
      other.end.send(other.message);
      await one.end.waitFor(other.message);
      expect([program.hasEnded, origin.hasEnded]).toEqual([false, false]);
      other.end.send(other.close);
      await one.end.waitFor(other.message + other.close);
      await vi.waitUntil(() => program.hasEnded && origin.hasEnded, WAIT_OPTIONS);
    },
  );

  test("sends thousands of messages at once: they go on a few at a time, and all arrive", async () => {
    const [program, origin] = await connectProgram(0);
    const before = origin.received.length;
    let atOnce = 0;
    origin.socket.on("data", (text: string) => (atOnce = Math.max(atOnce, text.length)));
    const message = buildPart(0, 2, true);
    program.send(message.repeat(4_000));
    await vi.waitUntil(
      () => origin.received.length - before === 4_000 * message.length,
      WAIT_OPTIONS,
    );
    expect(origin.received.slice(before)).toBe(message.repeat(4_000));
    expect(atOnce).toBeLessThan(2_000 * message.length);
  });
});
