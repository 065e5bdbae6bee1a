/** In how many messages an agent sends its frames. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WebSocket } from "ws";
import { FrameSender } from "../../../../agent/tunnel/frame-sender.ts";
import { FRAME_HEADER_BYTES } from "../../../../protocol/wire/frames.ts";

const STREAM = 1;
const TURNS = 1_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "setImmediate", "performance"] });
});
afterEach(() => void vi.useRealTimers());

/** @returns a sender, and the size of each message that it has sent. */
function createSender() {
  const sizes: number[] = [];
  const socket = {
    readyState: WebSocket.OPEN,
    bufferedAmount: 0,
    send: (message: Uint8Array, onSent: () => void) => {
      sizes.push(message.byteLength);
      onSent();
    },
  };
  return { sender: new FrameSender(socket as unknown as WebSocket), sizes };
}

/** Sends this many bytes in a turn of the event loop. */
function sendInTurn(sender: FrameSender, bytes: number): void {
  sender.send((writer) => writer.writeData(STREAM, new Uint8Array(bytes)), "light");
  vi.advanceTimersByTime(0);
}

test("a few small frames are sent without delay", () => {
  const { sender, sizes } = createSender();
  for (let turn = 0; turn < 5; turn += 1) sendInTurn(sender, 1);
  expect(sizes).toEqual(Array(5).fill(FRAME_HEADER_BYTES + 1));
});

test("very many small frames share messages, and none waits for longer than a millisecond", () => {
  const { sender, sizes } = createSender();
  for (let turn = 0; turn < TURNS; turn += 1) sendInTurn(sender, 1);
  expect(sizes.length).toBeLessThan(TURNS / 10);
  vi.advanceTimersByTime(1);
  const bytes = sizes.reduce((sum, size) => sum + size - FRAME_HEADER_BYTES, 0);
  expect(bytes).toBe(TURNS);
});

test("large frames are sent without delay, however many they are", () => {
  const { sender, sizes } = createSender();
  for (let turn = 0; turn < TURNS; turn += 1) sendInTurn(sender, 64 * 1024);
  expect(sizes).toHaveLength(TURNS);
});

test("after a pause, small frames are sent without delay again", () => {
  const { sender, sizes } = createSender();
  for (let turn = 0; turn < TURNS; turn += 1) sendInTurn(sender, 1);
  vi.advanceTimersByTime(10);
  const before = sizes.length;
  sendInTurn(sender, 1);
  expect(sizes).toHaveLength(before + 1);
});
