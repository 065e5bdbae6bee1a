/** How the relay writes to an agent. */
import { EventEmitter } from "node:events";
import { Duplex } from "node:stream";
import { expect, test, vi } from "vitest";
import type { WebSocket } from "ws";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import type { RelayTicket } from "../../../protocol/relay/ticket.ts";
import type { Association } from "../../../relay/association.ts";
import type { Associations } from "../../../relay/associations.ts";
import {
  CONTROL_BACKLOG_MAX_BYTES,
  ControlConnection,
} from "../../../relay/control/control-connection.ts";
import { Metrics } from "../../../relay/metrics.ts";
import type { TicketVerifier } from "../../../relay/tickets.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

const closedFlow = { type: "flow_closed", id: 1 } as const;

/** A stream that counts the writes to the system. */
class CountingStream extends Duplex {
  writes = 0;
  override _read(): void {}
  override _write(_chunk: unknown, _encoding: string, callback: () => void): void {
    this.writes += 1;
    callback();
  }
  override _writev(_chunks: unknown, callback: () => void): void {
    this.writes += 1;
    callback();
  }
}

/** @param association that the agent's ticket is for. */
function createConnection(association?: Partial<Association>) {
  const stream = new CountingStream();
  const socket = Object.assign(new EventEmitter(), {
    bufferedAmount: 0,
    send: vi.fn((text: string) => stream.write(text)),
    terminate: vi.fn(),
    close: vi.fn(),
  });
  const connection = new ControlConnection(socket as unknown as WebSocket, stream, {
    associations: {
      open: () => Promise.resolve(association),
      takeMessage: () => true,
      release() {},
    } as unknown as Associations,
    tickets: { verify: () => Promise.resolve({} as RelayTicket) } as unknown as TicketVerifier,
    metrics: new Metrics(),
    log: { info() {}, warn() {}, error() {} },
  });
  return { connection, socket, stream };
}

test("an agent that does not read its messages is disconnected", () => {
  const { connection, socket } = createConnection();
  socket.bufferedAmount = CONTROL_BACKLOG_MAX_BYTES;
  connection.send(closedFlow);
  expect(socket.send).toHaveBeenCalledOnce();
  socket.bufferedAmount += 1;
  connection.send(closedFlow);
  expect(socket.send).toHaveBeenCalledOnce();
  expect(socket.close).toHaveBeenCalledWith(CLOSE.heartbeat_timeout, expect.any(String));
});

test("all answers to one message leave in one write", async () => {
  const { connection, socket, stream } = createConnection({
    ticket: {} as RelayTicket,
    welcome: closedFlow,
    handleMessage() {
      for (let n = 0; n < 100; n++) connection.send(closedFlow);
    },
  });
  await connection.start("ticket");
  stream.writes = 0;
  socket.emit(
    "message",
    Buffer.from(JSON.stringify({ type: "resume", association: 1, flows: [] })),
    false,
  );
  await vi.waitUntil(() => stream.writableLength === 0, WAIT_OPTIONS);
  expect(socket.send).toHaveBeenCalledTimes(101);
  expect(stream.writes).toBe(1);
  socket.emit("close", 1000);
});
