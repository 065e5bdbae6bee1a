/** The connection of one agent, as its tunnel's object writes to it. */
import { expect, test, vi } from "vitest";
import { AgentLink } from "../../../../durable-objects/tunnel/agents/agent-link.ts";
import { BufferedBytes } from "../../../../durable-objects/tunnel/buffered-bytes.ts";
import { Pacer } from "../../../../durable-objects/tunnel/proxy/pacer.ts";
import type { AgentAttachment } from "../../../../durable-objects/tunnel/socket-attachments.ts";
import { STRAY_FRAMES_PER_SECOND_MAX } from "../../../../durable-objects/tunnel/stray-frames.ts";
import {
  CONNECTION_WINDOW_BYTES,
  HEARTBEAT_TIMEOUT_MS,
  STREAM_RESERVE_BYTES,
  STREAM_WINDOW_BYTES,
} from "../../../../protocol/limits.ts";
import { FRAME, FrameWriter, RESET } from "../../../../protocol/wire/frames.ts";
import { HOUR_MS } from "../../../../shared/time.ts";

const LARGE_HEAD = "a".repeat(100_000);

/**
 * @param receivedAtMs when its agent has last sent something.
 * @param windowBytes that the agent offers for each stream and for all together.
 * @returns the link, how much memory each message that it sent was a part of, and what is called when the agent violates the
 * protocol or sends too much.
 */
function createLink(receivedAtMs = 0, windowBytes = 0) {
  const bufferSizes: number[] = [];
  const socket = {
    send: (message: Uint8Array) => void bufferSizes.push(message.buffer.byteLength),
  };
  const onViolation = vi.fn();
  const onOverload = vi.fn();
  const hello = { streamWindow: windowBytes, connectionWindow: windowBytes };
  const attachment = { hello } as AgentAttachment;
  const link = new AgentLink(socket as unknown as WebSocket, attachment, receivedAtMs, {
    buffered: new BufferedBytes(),
    pace: { toAgent: new Pacer(0), toVisitors: new Pacer(0) },
    onViolation,
    onOverload,
  });
  return { link, bufferSizes, onViolation, onOverload };
}

const stream = {
  onFrame: () => true,
  onReset: () => undefined,
  onConnectionLost: () => undefined,
};

test.each(["finish", "reset"] as const)(
  "keeps no large buffer when the exchange that needed it has ended: %s",
  async (end) => {
    const { link, bufferSizes } = createLink();
    const id = link.open(stream);
    link.send((writer) => writer.writeText(FRAME.request, 0, id, LARGE_HEAD));
    await Promise.resolve();
    if (end === "finish") link.finish(id);
    else link.reset(id, RESET.canceled, "");
    for (let n = 0; n < 10; n++) {
      link.send((writer) => writer.writeCredit(id, 1));
      await Promise.resolve();
    }
    expect(bufferSizes[0]).toBeGreaterThan(LARGE_HEAD.length);
    expect(Math.max(...bufferSizes.slice(1))).toBeLessThan(32 * 1024);
  },
);

test.each([0, HOUR_MS])(
  "an agent that sends nothing is noticed also after the clock was set back by %i ms",
  (backMs) => {
    const beforeMs = 2 * HOUR_MS;
    const { link } = createLink(beforeMs);
    const isSilent = (nowMs: number) => link.isSilent(nowMs, HEARTBEAT_TIMEOUT_MS, () => beforeMs);
    const nowMs = beforeMs - backMs;
    expect(isSilent(nowMs)).toBe(false);
    expect(isSilent(nowMs + HEARTBEAT_TIMEOUT_MS)).toBe(false);
    expect(isSilent(nowMs + HEARTBEAT_TIMEOUT_MS + 1)).toBe(true);
  },
);

test("an agent that offers larger windows than the service's own gets these", () => {
  const { link } = createLink(0, 2 ** 31);
  const [one, another] = [1, 2];
  expect(link.windows.available(one)).toBe(STREAM_WINDOW_BYTES);
  link.windows.recordSent(another, CONNECTION_WINDOW_BYTES + STREAM_RESERVE_BYTES);
  expect(link.windows.available(one)).toBe(STREAM_RESERVE_BYTES);
});

const STRAY_FRAMES: [what: string, write: (writer: FrameWriter, id: number) => void][] = [
  ["credits of nothing", (writer, id) => writer.writeCredit(id, 0)],
  ["credits for what was not sent", (writer, id) => writer.writeCredit(id, 1)],
  ["credits of unknown streams", (writer, id) => writer.writeCredit(id + 1, 1)],
  ["empty parts of a body", (writer, id) => writer.writeText(FRAME.data, 0, id, "")],
  ["parts of unknown bodies", (writer, id) => writer.writeText(FRAME.data, 0, id + 1, "a")],
];

test.each(STRAY_FRAMES)("%s are accepted up to a bound", (_, write) => {
  vi.useFakeTimers();
  const overload = (frames: number): boolean => {
    const { link, onViolation, onOverload } = createLink();
    const id = link.open(stream);
    const writer = new FrameWriter();
    for (let n = 0; n < frames; n++) write(writer, id);
    link.receive(writer.take().slice().buffer);
    vi.runAllTimers();
    expect(onViolation).not.toHaveBeenCalled();
    return onOverload.mock.calls.length > 0;
  };
  expect(overload(STRAY_FRAMES_PER_SECOND_MAX)).toBe(false);
  expect(overload(STRAY_FRAMES_PER_SECOND_MAX + 1)).toBe(true);
  vi.useRealTimers();
});

const ENDS: [name: string, end: (link: AgentLink, id: number) => void][] = [
  ["reset", (link, id) => link.reset(id, RESET.canceled, "")],
  ["last frame from this side", (link, id) => void link.abandon(id)],
];

test.each(ENDS)("all bytes of a stream's window may follow its %s, in tiny frames", (_, end) => {
  vi.useFakeTimers();
  const { link, onViolation, onOverload } = createLink();
  const id = link.open(stream);
  end(link, id);
  const sendParts = (count: number, part: string) => {
    const writer = new FrameWriter();
    for (let n = 0; n < count; n++) writer.writeText(FRAME.data, 0, id, part);
    link.receive(writer.take().slice().buffer);
    vi.runAllTimers();
  };
  const part = "a".repeat(16);
  const messages = 4;
  for (let message = 0; message < messages; message++)
    sendParts(STREAM_WINDOW_BYTES / part.length / messages, part);
  expect(onOverload).not.toHaveBeenCalled();
  sendParts(STRAY_FRAMES_PER_SECOND_MAX + 1, "a");
  expect(onOverload).toHaveBeenCalledTimes(1);
  expect(onViolation).not.toHaveBeenCalled();
  vi.useRealTimers();
});

test.each([FRAME.hello, FRAME.request, 0x7f as typeof FRAME.request])(
  "a frame of type %i, which agents do not send, violates the protocol",
  (type) => {
    const writer = new FrameWriter();
    writer.writeText(type, 0, 1, "{}");
    const { link, onViolation } = createLink();
    link.receive(writer.take().slice().buffer);
    expect(onViolation).toHaveBeenCalledOnce();
  },
);
