import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  QUEUE_SHORT_BYTES,
  SendQueue,
  STALL_MIN_MS,
} from "../../../../../durable-objects/tunnel/proxy/send-queue.ts";

const LONG_BYTES = 1024 * 1024;

/** A socket whose queue a test sets, as the platform would report it. */
class QueuedSocket {
  bufferedAmount = 0;
  readonly events: string[] = [];
  readonly queue = new SendQueue(this, {
    isAcknowledged: false,
    onShort: () => this.events.push("short"),
    onStalled: () => this.events.push("stalled"),
  });
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("a queue of sent messages", () => {
  test.each([0, QUEUE_SHORT_BYTES])("of %i bytes is short at once", (bytes) => {
    const socket = new QueuedSocket();
    socket.bufferedAmount = bytes;
    socket.queue.watch();
    expect(socket.events).toEqual(["short"]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("is short at once where the platform does not report it", () => {
    const events: string[] = [];
    const queue = new SendQueue({} as WebSocket, {
      isAcknowledged: false,
      onShort: () => events.push("short"),
      onStalled: () => events.push("stalled"),
    });
    queue.watch();
    expect([events, queue.bytes]).toEqual([["short"], 0]);
  });

  test("is short once its peer has read, however often it was watched", () => {
    const socket = new QueuedSocket();
    socket.bufferedAmount = LONG_BYTES;
    for (let i = 0; i < 3; i += 1) socket.queue.watch();
    vi.advanceTimersByTime(STALL_MIN_MS / 2);
    expect([socket.events, socket.queue.isLong]).toEqual([[], true]);
    socket.bufferedAmount = 0;
    vi.advanceTimersByTime(STALL_MIN_MS / 2);
    expect([socket.events, socket.queue.isLong]).toEqual([["short"], false]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("stalls when its peer reads nothing, and not while it reads slowly", () => {
    const socket = new QueuedSocket();
    socket.bufferedAmount = LONG_BYTES;
    socket.queue.watch();
    for (let i = 0; i < 5; i += 1) {
      socket.bufferedAmount -= 1;
      vi.advanceTimersByTime(STALL_MIN_MS);
    }
    expect(socket.events).toEqual([]);
    vi.advanceTimersByTime(2 * STALL_MIN_MS);
    expect(socket.events).toEqual(["stalled"]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("of one large message has longer, because the platform reports it as a whole", () => {
    const socket = new QueuedSocket();
    socket.bufferedAmount = 32 * LONG_BYTES;
    socket.queue.watch();
    vi.advanceTimersByTime(3 * STALL_MIN_MS);
    expect(socket.events).toEqual([]);
  });

  test("is checked some hundred times, not thousands, before it stalls", () => {
    const socket = new QueuedSocket();
    let reads = 0;
    Object.defineProperty(socket, "bufferedAmount", {
      get: () => {
        reads += 1;
        return LONG_BYTES;
      },
    });
    socket.queue.watch();
    vi.advanceTimersByTime(2 * STALL_MIN_MS);
    expect(socket.events).toEqual(["stalled"]);
    expect(reads).toBeLessThan(1_000);
  });

  test("leaves no timer when it is stopped", () => {
    const socket = new QueuedSocket();
    socket.bufferedAmount = LONG_BYTES;
    socket.queue.watch();
    socket.queue.stop();
    expect([vi.getTimerCount(), socket.queue.isLong]).toEqual([0, false]);
  });
});
