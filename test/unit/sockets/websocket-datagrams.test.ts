/** Datagrams in WebSocket messages, as agent and relay send them: how they share messages, and which are dropped. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { readDatagrams } from "../../../protocol/relay/datagrams.ts";
import { WebSocketDatagramSender } from "../../../sockets/websocket-datagrams.ts";

const KiB = 1024;

let messages: Buffer[];
let link: { bufferedBytes: number; sendBinary(message: Buffer): void };
let sender: WebSocketDatagramSender;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setImmediate", "clearImmediate", "performance"] });
  vi.advanceTimersByTime(1_000);
  messages = [];
  link = { bufferedBytes: 0, sendBinary: (message) => messages.push(message) };
  sender = new WebSocketDatagramSender(link);
});
afterEach(() => vi.useRealTimers());

function readAll(): string[] {
  const texts: string[] = [];
  for (const message of messages) {
    readDatagrams(message, ({ flow }, payload) => texts.push(`${flow}:${String(payload)}`));
  }
  return texts;
}

test("those of one turn share a message, and later ones do not overwrite it", () => {
  sender.send(1, Buffer.from("a"));
  sender.send(2, Buffer.from("bc"));
  expect(messages).toHaveLength(0);
  vi.advanceTimersByTime(1);
  sender.send(1, Buffer.from("later"));
  sender.flush();
  expect(messages).toHaveLength(2);
  expect(readAll()).toEqual(["1:a", "2:bc", "1:later"]);
});

test("more than fits into one message is sent in several", () => {
  for (let at = 0; at < 4; at += 1) expect(sender.send(at, Buffer.alloc(20 * KiB))).toBe(true);
  sender.flush();
  expect(messages.map(({ length }) => Math.floor(length / KiB))).toEqual([60, 20]);
  expect(sender.send(4, Buffer.alloc(70 * KiB))).toBe(false);
});

test("those that would wait for more than 50 ms at the latest rate are dropped", () => {
  link.bufferedBytes = 65 * KiB;
  expect(sender.send(1, Buffer.from("x"))).toBe(false);
  link.bufferedBytes = 0;
  for (let ms = 0; ms < 500; ms += 1) {
    sender.send(1, Buffer.alloc(4 * KiB));
    vi.advanceTimersByTime(1);
  }
  // 4 KiB a millisecond.
  link.bufferedBytes = 190 * KiB;
  expect(sender.send(1, Buffer.from("x"))).toBe(true);
  link.bufferedBytes = 210 * KiB;
  expect(sender.send(1, Buffer.from("x"))).toBe(false);
});
