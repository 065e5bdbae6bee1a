/** The turns in which the frames of one connection are handled, so that others are served in between. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { AgentLink } from "../../../../durable-objects/tunnel/agents/agent-link.ts";
import {
  BufferedBytes,
  ISOLATE_BUFFER_MAX_BYTES,
} from "../../../../durable-objects/tunnel/buffered-bytes.ts";
import {
  FrameReceiver,
  FRAMES_PER_TURN_MAX,
} from "../../../../durable-objects/tunnel/frame-receiver.ts";
import { Pacer } from "../../../../durable-objects/tunnel/proxy/pacer.ts";
import type { AgentAttachment } from "../../../../durable-objects/tunnel/socket-attachments.ts";
import { WIRE_MESSAGE_MAX_BYTES } from "../../../../protocol/limits.ts";
import { FRAME, FrameWriter } from "../../../../protocol/wire/frames.ts";

const MANY = 20 * FRAMES_PER_TURN_MAX;

/** A message whose frames are for the streams with these ids. */
function build(...streams: number[]): ArrayBuffer {
  const writer = new FrameWriter();
  for (const stream of streams) writer.writeText(FRAME.text, 0, stream, "x");
  return writer.take().slice().buffer;
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);

const held = new BufferedBytes();

function createReceiver({ reserveBytes = Infinity, invalid = -1 } = {}) {
  const streams: number[] = [];
  const onViolation = vi.fn<() => void>();
  const onOverload = vi.fn<() => void>();
  const receiver = new FrameReceiver({
    buffered: held,
    reserveBytes,
    onFrame: ({ stream }) => {
      streams.push(stream);
      return stream !== invalid;
    },
    onViolation,
    onOverload,
  });
  return { receiver, streams, onViolation, onOverload };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  expect(held.held).toBe(0);
});

describe("frames", () => {
  test("of a large message are handled in order, a bounded number before other events", () => {
    const { receiver, streams } = createReceiver();
    receiver.receive(build(...range(0, MANY)));
    for (let turns = 1; turns < MANY / FRAMES_PER_TURN_MAX; turns += 1) {
      expect(streams).toHaveLength(turns * FRAMES_PER_TURN_MAX);
      // Not 0 ms: the clock of an object stands still while a timer is due.
      vi.advanceTimersByTime(1);
    }
    expect(streams).toEqual(range(0, MANY));
  });

  test("of many small messages are counted together, and wait for those that came before", () => {
    const { receiver, streams } = createReceiver();
    for (const stream of range(0, MANY)) receiver.receive(build(stream));
    expect(streams).toHaveLength(FRAMES_PER_TURN_MAX);
    vi.advanceTimersToNextTimer();
    receiver.receive(build(MANY));
    expect(streams).toHaveLength(2 * FRAMES_PER_TURN_MAX);
    vi.runAllTimers();
    expect(streams).toEqual(range(0, MANY + 1));
  });

  test("that come after a turn of the others do not wait", () => {
    const { receiver, streams } = createReceiver();
    receiver.receive(build(...range(0, FRAMES_PER_TURN_MAX)));
    vi.runAllTimers();
    receiver.receive(build(...range(0, FRAMES_PER_TURN_MAX)));
    expect(streams).toHaveLength(2 * FRAMES_PER_TURN_MAX);
  });

  test("are all handled before the end of their connection", () => {
    const { receiver, streams } = createReceiver();
    const ends: number[] = [];
    receiver.whenRead(() => ends.push(streams.length));
    receiver.receive(build(...range(0, MANY)));
    receiver.whenRead(() => ends.push(streams.length));
    vi.runAllTimers();
    expect(ends).toEqual([0, MANY]);
  });

  test("that wait are dropped with their connection", () => {
    const { receiver, streams, onViolation } = createReceiver();
    receiver.receive(build(...range(0, MANY)));
    expect(held.held).toBeGreaterThan(0);
    receiver.close();
    receiver.receive(build(0));
    expect([streams.length, held.held, vi.getTimerCount()]).toEqual([FRAMES_PER_TURN_MAX, 0, 0]);
    expect(onViolation).not.toHaveBeenCalled();
  });

  test("behind an invalid one are not handled", () => {
    const invalid = 2 * FRAMES_PER_TURN_MAX;
    const { receiver, streams, onViolation } = createReceiver({ invalid });
    receiver.receive(build(...range(0, MANY)));
    vi.runAllTimers();
    expect(streams.at(-1)).toBe(invalid);
    expect(onViolation).toHaveBeenCalledTimes(1);
  });

  test("beyond the memory of the tunnel end the connection, but not as many as may always wait", () => {
    const { receiver, onViolation, onOverload } = createReceiver({
      reserveBytes: WIRE_MESSAGE_MAX_BYTES,
    });
    held.add(ISOLATE_BUFFER_MAX_BYTES);
    const message = build(...range(0, MANY));
    receiver.receive(message);
    expect(onOverload).not.toHaveBeenCalled();
    let waiting = 1;
    for (; onOverload.mock.calls.length === 0; waiting += 1) receiver.receive(message);
    held.add(-ISOLATE_BUFFER_MAX_BYTES);
    expect(onViolation).not.toHaveBeenCalled();
    expect(waiting * message.byteLength).toBeLessThanOrEqual(
      WIRE_MESSAGE_MAX_BYTES + message.byteLength,
    );
  });
});

test("an agent's messages to a visitor are passed on a bounded number at a time", () => {
  let passed = 0;
  const link = new AgentLink({} as WebSocket, {} as AgentAttachment, 0, {
    buffered: held,
    pace: { toAgent: new Pacer(1), toVisitors: new Pacer(1) },
    onViolation: () => undefined,
    onOverload: () => undefined,
  });
  const id = link.open({
    onFrame: () => (passed += 1) > 0,
    onReset: () => undefined,
    onConnectionLost: () => undefined,
  });
  link.receive(build(...Array.from({ length: MANY }, () => id)));
  expect(passed).toBe(FRAMES_PER_TURN_MAX);
  vi.runAllTimers();
  expect(passed).toBe(MANY);
});
