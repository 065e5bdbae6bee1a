/** A visitor's WebSocket in the front proxy, without connections. */
import { expect, test } from "vitest";
import {
  ACKNOWLEDGEMENT_MIN_MESSAGES,
  formatAcknowledgement,
} from "../../../../../protocol/front-proxy/acknowledgements.ts";
import {
  buildFrame,
  buildMaskedFrame,
  OPCODE,
} from "../../../../../self-host/front-proxy/websockets/frame-reader.ts";
import { createFrameQueue } from "../../../../../self-host/front-proxy/queue/workerd-queues.ts";
import { FrameAllowance } from "../../../../../self-host/front-proxy/websockets/frame-allowance.ts";
import { SourceMemory } from "../../../../../shared/bounds/source-memory.ts";
import { VisitorWebSocket } from "../../../../../self-host/front-proxy/websockets/visitor-web-socket.ts";

/** The server reads all frames at once. */
function createAllowance(): FrameAllowance {
  const queue = createFrameQueue("visitor", async () => {});
  return new FrameAllowance(queue, "source", () => undefined);
}

test("acknowledges messages by their number too, so that empty ones are noticed", () => {
  const toServer: Uint8Array[] = [];
  const socket = new VisitorWebSocket({
    acknowledgementKey: "key",
    allowance: createAllowance(),
    reservation: new SourceMemory(1_000).createReservation("source"),
    hasUnsentBytes: () => false,
    writeToVisitor: (_, onWritten) => onWritten?.(),
    writeToServer: (pieces) => toServer.push(Buffer.concat(pieces)),
    end() {},
    reset() {},
  });
  const receive = (...frames: Buffer[]) =>
    socket.receiveFromServer(Buffer.concat(frames), () => undefined);
  const empty = buildFrame(OPCODE.text, Buffer.alloc(0));
  const two = buildFrame(OPCODE.binary, Buffer.from("ab"));
  receive(two, ...Array.from({ length: ACKNOWLEDGEMENT_MIN_MESSAGES - 2 }, () => empty));
  expect(toServer).toEqual([]);
  receive(empty, buildFrame(OPCODE.ping, Buffer.alloc(0)));
  const read = { bytes: 2, messages: ACKNOWLEDGEMENT_MIN_MESSAGES };
  const text = Buffer.from(formatAcknowledgement("key", read));
  expect(Buffer.concat(toServer).subarray(-text.length)).toEqual(text);
});

test("of a visitor who sends pings and reads nothing, only the newest 64 are answered", () => {
  let isBehind = true;
  const written: Uint8Array[] = [];
  const socket = new VisitorWebSocket({
    acknowledgementKey: "key",
    allowance: createAllowance(),
    reservation: new SourceMemory(1_000).createReservation("source"),
    hasUnsentBytes: () => isBehind,
    writeToVisitor: (bytes) => written.push(bytes),
    writeToServer() {},
    end() {},
    reset() {},
  });
  const payload = (n: number) => Buffer.from(String(n).padStart(125, "0"));
  const ping = (n: number) => socket.receiveFromVisitor(buildMaskedFrame(OPCODE.ping, payload(n)));
  for (let n = 1; n < 10_000; n++) ping(n);
  expect(written).toEqual([]);
  isBehind = false;
  ping(10_000);
  const newest = Array.from({ length: 64 }, (_, n) => 10_000 - 63 + n);
  const pongs = newest.map((n) => buildFrame(OPCODE.pong, payload(n)));
  expect(Buffer.concat(written)).toEqual(Buffer.concat(pongs));
});

test("a visitor whose message never ends is closed with 1013, also when its frames are empty", () => {
  const written: Uint8Array[] = [];
  const socket = new VisitorWebSocket({
    acknowledgementKey: "key",
    allowance: createAllowance(),
    reservation: new SourceMemory(2_000).createReservation("source"),
    hasUnsentBytes: () => false,
    writeToVisitor() {},
    writeToServer: (pieces) => written.push(Buffer.concat(pieces)),
    end() {},
    reset() {},
  });
  const empty = (opcode: number) => Buffer.from([opcode, 0x80, 0, 0, 0, 0]);
  socket.receiveFromVisitor(empty(OPCODE.binary));
  for (let n = 0; n < 15; n++) socket.receiveFromVisitor(empty(OPCODE.continuation));
  const close = buildMaskedFrame(OPCODE.close, Buffer.from([1013 >> 8, 1013 & 255]));
  expect(written.at(-1)).toEqual(close);
});
