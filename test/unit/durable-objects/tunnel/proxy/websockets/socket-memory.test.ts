import { describe, expect, test } from "vitest";
import {
  BufferedBytes,
  ISOLATE_BUFFER_MAX_BYTES,
} from "../../../../../../durable-objects/tunnel/buffered-bytes.ts";
import {
  ISOLATE_SOCKETS_MAX_BYTES,
  SocketMemory,
  TUNNEL_SOCKETS_MAX_BYTES,
  type MemoryHolder,
} from "../../../../../../durable-objects/tunnel/proxy/websockets/socket-memory.ts";

const MIB = 1024 * 1024;

/** A socket that keeps what the platform has queued for it when it ends. */
class Holder implements MemoryHolder {
  readonly #memory: SocketMemory;
  readonly #queuedBytes: number;
  hasEnded = false;

  constructor(memory: SocketMemory, queuedBytes = 0) {
    this.#memory = memory;
    this.#queuedBytes = queuedBytes;
  }

  endForMemory(): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.#memory.record(this, this.#queuedBytes);
  }
}

describe("the memory of a tunnel's sockets", () => {
  test("has room for one message of the largest size", () => {
    const memory = new SocketMemory();
    const holder = new Holder(memory);
    memory.record(holder, TUNNEL_SOCKETS_MAX_BYTES);
    expect([holder.hasEnded, memory.isFull]).toEqual([false, false]);
    memory.record(holder, 0);
  });

  test("ends the socket that holds the most, and no other", () => {
    const memory = new SocketMemory();
    const [small, large, newest] = [new Holder(memory), new Holder(memory), new Holder(memory)];
    memory.record(small, MIB);
    memory.record(large, TUNNEL_SOCKETS_MAX_BYTES - MIB);
    memory.record(newest, 1);
    expect([small, large, newest].map(({ hasEnded }) => hasEnded)).toEqual([false, true, false]);
    for (const holder of [small, newest]) memory.record(holder, 0);
  });

  test("stays full with what the platform still holds for sockets that have ended", () => {
    const memory = new SocketMemory();
    const stuck = new Holder(memory, TUNNEL_SOCKETS_MAX_BYTES + 1);
    memory.record(stuck, TUNNEL_SOCKETS_MAX_BYTES + 1);
    expect([stuck.hasEnded, memory.isFull]).toEqual([true, true]);
    memory.record(stuck, 0);
    expect(memory.isFull).toBe(false);
  });

  test("is bounded for all tunnels of the isolate together", () => {
    const tunnels = Array.from({ length: 10 }, () => new SocketMemory());
    const holders = tunnels.map((memory) => new Holder(memory));
    for (const [i, memory] of tunnels.entries())
      memory.record(holders[i]!, ISOLATE_SOCKETS_MAX_BYTES / 4);
    expect(holders.filter(({ hasEnded }) => !hasEnded)).toHaveLength(4);
    for (const [i, memory] of tunnels.entries()) memory.record(holders[i]!, 0);
  });

  test("is bounded together with the bodies of all tunnels: a body has no room that messages take", () => {
    const [memory, buffered] = [new SocketMemory(), new BufferedBytes()];
    const holder = new Holder(memory);
    const half = ISOLATE_BUFFER_MAX_BYTES / 2;
    memory.record(holder, half);
    expect(buffered.hold(half / 2)).toBe(false);
    expect(buffered.hold(half / 4)).toBe(true);
    memory.record(holder, 0);
    buffered.release(half / 4);
  });

  test("is bounded together with the bodies of all tunnels: a message that exceeds the rest ends its socket", () => {
    const [memory, buffered] = [new SocketMemory(), new BufferedBytes()];
    const [small, large] = [new Holder(memory), new Holder(memory)];
    buffered.add(ISOLATE_BUFFER_MAX_BYTES - 4 * MIB);
    memory.record(small, MIB);
    expect(memory.isFull).toBe(false);
    memory.record(large, 4 * MIB);
    expect([small.hasEnded, large.hasEnded, memory.isFull]).toEqual([false, true, false]);
    memory.record(small, 0);
    buffered.add(4 * MIB - ISOLATE_BUFFER_MAX_BYTES);
  });
});
