/** A visitor's WebSocket while time passes, which tests inside workerd can't speed up. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { AgentLink } from "../../../../../../durable-objects/tunnel/agents/agent-link.ts";
import { WebSocketHandshake } from "../../../../../../durable-objects/tunnel/proxy/websockets/socket-handshake.ts";
import {
  SocketMemory,
  TUNNEL_SOCKETS_MAX_BYTES,
} from "../../../../../../durable-objects/tunnel/proxy/websockets/socket-memory.ts";
import { STALL_MIN_MS } from "../../../../../../durable-objects/tunnel/proxy/send-queue.ts";
import { Pacer } from "../../../../../../durable-objects/tunnel/proxy/pacer.ts";
import {
  CLOSE_ANSWER_MAX_MS,
  STALLED_SOCKET_MAX_MS,
  VisitorSocket,
} from "../../../../../../durable-objects/tunnel/proxy/websockets/visitor-socket.ts";
import { SendWindows } from "../../../../../../protocol/wire/flow-control.ts";
import {
  FLAG,
  FRAME,
  FrameWriter,
  parseCodeAndText,
  parseCredit,
  RESET,
  type Frame,
} from "../../../../../../protocol/wire/frames.ts";
import { readFrames } from "../../../../../../protocol/wire/read-frames.ts";
import {
  CONNECTION_WINDOW_BYTES,
  FRAME_DATA_MAX_BYTES,
  MESSAGE_OVERHEAD_BYTES,
  STREAM_WINDOW_BYTES,
} from "../../../../../../protocol/limits.ts";

const STREAM = 7;

/** The connection to an agent, which records what is sent. */
class RecordedLink {
  readonly pace = { toAgent: new Pacer(10_000), toVisitors: new Pacer(10_000) };
  readonly windows = new SendWindows(STREAM_WINDOW_BYTES, CONNECTION_WINDOW_BYTES);
  readonly frames: Frame[] = [];
  readonly attachment = { hello: { answersClose: true } };

  open(): number {
    return STREAM;
  }

  finish(): void {}

  abandon(): void {}

  sendRequest(): void {}

  send(write: (writer: FrameWriter) => void): void {
    const writer = new FrameWriter();
    write(writer);
    readFrames(writer.take().slice(), (frame) => this.frames.push(frame));
  }

  reset(id: number, code: number, reason: string): void {
    this.send((writer) => writer.writeCodeAndText(FRAME.reset, id, code, reason));
  }

  /** The payloads of the sent frames of a type. */
  sent(type: number): Uint8Array[] {
    return this.frames.filter((frame) => frame.type === type).map(({ payload }) => payload);
  }
}

/** A visitor's socket whose queue a test sets. */
class QueuedSocket {
  bufferedAmount = 0;
  sent = 0;
  closed: unknown[] | undefined;

  send(): void {
    this.sent += 1;
  }

  close(...close: unknown[]): void {
    this.closed = close;
  }
}

function createVisitor(acknowledgementKey: string | null = null) {
  const link = new RecordedLink();
  const socket = new QueuedSocket();
  const memory = new SocketMemory();
  const onDone = vi.fn();
  const visitor = new VisitorSocket(
    link as unknown as AgentLink,
    STREAM,
    socket as unknown as WebSocket,
    {
      usage: { countIn: () => {}, countOut: () => {} } as never,
      memory,
      findRecording: () => undefined,
      acknowledgementKey,
      onDone,
    },
  );
  visitors.push(visitor);
  const receive = (payload: Uint8Array, type: number = FRAME.binary, flags = 0) =>
    visitor.onFrame({ type, flags, stream: STREAM, payload });
  return { link, socket, memory, visitor, receive, onDone };
}

const text = (message: string) => new TextEncoder().encode(message);
const EMPTY = new Uint8Array();
/** More than a tunnel's memory has room for. */
const EMPTY_MESSAGES_MAX = TUNNEL_SOCKETS_MAX_BYTES / MESSAGE_OVERHEAD_BYTES + 1;

/** How often something happens until the visitor's socket is closed; gives up after that many times. */
function countUntilClosed(socket: QueuedSocket, act: () => void): number {
  let count = 0;
  for (; socket.closed === undefined && count <= 2 * EMPTY_MESSAGES_MAX; count += 1) act();
  return count;
}

/** Ended after each test: the isolate's bound counts what they hold. */
const visitors: VisitorSocket[] = [];

const sumCredit = (link: RecordedLink) =>
  link.sent(FRAME.credit).reduce((sum, payload) => sum + parseCredit(payload)!, 0);

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  for (const visitor of visitors.splice(0)) {
    visitor.onClosed({ code: 1006, reason: "" });
    // After its own Close, a visitor waits for that of the local server.
    visitor.onConnectionLost();
  }
  vi.useRealTimers();
});

describe("a visitor who does not read", () => {
  test("holds the agent's credit back until it reads", () => {
    const { link, socket, receive } = createVisitor();
    socket.bufferedAmount = STREAM_WINDOW_BYTES;
    for (let i = 0; i < 3; i += 1) receive(new Uint8Array(FRAME_DATA_MAX_BYTES));
    vi.advanceTimersByTime(STALL_MIN_MS / 2);
    expect([socket.sent, sumCredit(link)]).toEqual([3, 0]);
    socket.bufferedAmount = 0;
    vi.advanceTimersByTime(STALL_MIN_MS / 2);
    expect(sumCredit(link)).toBe(3 * FRAME_DATA_MAX_BYTES);
  });

  test("is sent no more than the agent's window", () => {
    const { socket, receive } = createVisitor();
    socket.bufferedAmount = STREAM_WINDOW_BYTES;
    const frames = STREAM_WINDOW_BYTES / FRAME_DATA_MAX_BYTES;
    for (let i = 0; i < frames; i += 1)
      expect(receive(new Uint8Array(FRAME_DATA_MAX_BYTES))).toBe(true);
    expect(receive(new Uint8Array(1))).toBe(false);
  });

  test("is closed with 1013 in the end, and the agent's stream is reset", () => {
    const { link, socket, visitor, receive } = createVisitor();
    socket.bufferedAmount = STREAM_WINDOW_BYTES;
    receive(new TextEncoder().encode("unread"), FRAME.text);
    vi.advanceTimersByTime(2 * STALL_MIN_MS);
    expect(socket.closed).toEqual([1013, "the visitor reads too slowly"]);
    expect(link.sent(FRAME.reset).map((payload) => parseCodeAndText(payload)?.code)).toEqual([
      RESET.tooLarge,
    ]);
    visitor.onMessage("too late");
    expect(link.sent(FRAME.text)).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("is recognized by the front proxy's acknowledgements, which the local server does not receive", () => {
    const { link, visitor, receive } = createVisitor("key");
    receive(new Uint8Array(FRAME_DATA_MAX_BYTES));
    expect(sumCredit(link)).toBe(0);
    visitor.onMessage("key:1000:0");
    expect(sumCredit(link)).toBe(0);
    visitor.onMessage(`key:${FRAME_DATA_MAX_BYTES - 1000}:1`);
    expect(sumCredit(link)).toBe(FRAME_DATA_MAX_BYTES);
    expect(link.sent(FRAME.text)).toEqual([]);
    visitor.onMessage("keys");
    expect(link.sent(FRAME.text)).toHaveLength(1);
  });

  test("is closed with 1013 when too many empty messages wait for it, which need no credit", () => {
    const { socket, memory, visitor, receive } = createVisitor("key");
    expect(countUntilClosed(socket, () => receive(EMPTY, FRAME.text))).toBeLessThanOrEqual(
      EMPTY_MESSAGES_MAX,
    );
    expect(socket.closed?.[0]).toBe(1013);
    visitor.onClosed({ code: 1006, reason: "" });
    expect(memory.isFull).toBe(false);
  });

  test("gets any number of empty messages while their number is acknowledged", () => {
    const { link, socket, visitor, receive } = createVisitor("key");
    receive(new Uint8Array(FRAME_DATA_MAX_BYTES));
    visitor.onMessage(`key:${FRAME_DATA_MAX_BYTES}:1`);
    for (let i = 0; i < EMPTY_MESSAGES_MAX; i += 1) {
      receive(EMPTY, FRAME.text);
      if (i % 200 === 199) visitor.onMessage("key:0:200");
    }
    expect([socket.sent, socket.closed]).toEqual([1 + EMPTY_MESSAGES_MAX, undefined]);
    expect(sumCredit(link)).toBe(FRAME_DATA_MAX_BYTES);
  });

  test("counts against the tunnel's memory until its connection is closed", () => {
    const { socket, visitor, memory, receive } = createVisitor();
    socket.bufferedAmount = 40 * STREAM_WINDOW_BYTES;
    receive(new Uint8Array(1));
    expect([socket.closed?.[0], memory.isFull]).toEqual([1013, true]);
    visitor.onClosed({ code: 1006, reason: "" });
    expect(memory.isFull).toBe(false);
  });
});

describe("a visitor's WebSocket whose messages take longer than the limit without progress", () => {
  /** Several times the limit. */
  const waitWhile = (act: () => void) => {
    for (let i = 0; i < 6; i += 1) {
      act();
      vi.advanceTimersByTime(STALLED_SOCKET_MAX_MS / 2);
    }
  };

  test("stays open while the local server reads slowly, and closes when it stops reading", () => {
    const { link, socket, visitor } = createVisitor();
    visitor.onMessage(new ArrayBuffer(2 * STREAM_WINDOW_BYTES));
    waitWhile(() => {
      link.windows.addCredit(STREAM, FRAME_DATA_MAX_BYTES);
      visitor.onMessage("more");
    });
    expect(socket.closed).toBeUndefined();
    vi.advanceTimersByTime(STALLED_SOCKET_MAX_MS);
    expect(socket.closed?.[0]).toBe(1011);
  });

  test("is closed when nothing is sent to the local server, however much the visitor sends", () => {
    const { socket, visitor } = createVisitor();
    visitor.onMessage(new ArrayBuffer(2 * STREAM_WINDOW_BYTES));
    waitWhile(() => visitor.onMessage("more"));
    expect(socket.closed?.[0]).toBe(1011);
  });

  test("stays open while parts of the local server's message arrive, and closes when none does", () => {
    const { socket, receive } = createVisitor();
    waitWhile(() => receive(text("part"), FRAME.text, FLAG.more));
    expect(socket.closed).toBeUndefined();
    vi.advanceTimersByTime(STALLED_SOCKET_MAX_MS);
    expect(socket.closed?.[0]).toBe(1011);
  });

  test("stays awake for an incomplete message after everything else was sent", () => {
    const { link, visitor, receive } = createVisitor();
    visitor.onMessage(new ArrayBuffer(STREAM_WINDOW_BYTES + 1));
    receive(text("part"), FRAME.text, FLAG.more);
    link.windows.addCredit(STREAM, link.windows.outstanding(STREAM));
    expect(vi.getTimerCount()).toBe(1);
    receive(text("last part"), FRAME.text);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("a visitor who has closed", () => {
  const CLOSE = { code: 4001, reason: "bye" };
  const close = (code: number) => new Uint8Array([code >> 8, code & 0xff]);

  test("gets the local server's last messages and its Close", () => {
    const { link, socket, visitor, receive } = createVisitor();
    visitor.onClosed(CLOSE);
    expect(parseCodeAndText(link.sent(FRAME.close)[0]!)).toEqual({ code: 4001, text: "bye" });
    receive(text("last words"), FRAME.text);
    expect([socket.sent, socket.closed]).toEqual([1, undefined]);
    receive(close(4002), FRAME.close);
    expect(socket.closed).toEqual([4002, ""]);
    expect([link.sent(FRAME.reset), vi.getTimerCount()]).toEqual([[], 0]);
  });

  test("is answered with its own Close when the local server does not close in time", () => {
    const { link, socket, visitor } = createVisitor();
    visitor.onClosed(CLOSE);
    vi.advanceTimersByTime(CLOSE_ANSWER_MAX_MS - 1);
    expect(socket.closed).toBeUndefined();
    vi.advanceTimersByTime(1);
    expect(socket.closed).toEqual([4001, "bye"]);
    expect(link.sent(FRAME.reset).map((payload) => parseCodeAndText(payload)?.code)).toEqual([
      RESET.canceled,
    ]);
  });

  test.each<[string, (visitor: VisitorSocket) => void]>([
    ["the local server's connection breaks", (visitor) => visitor.onReset()],
    ["the agent disconnects", (visitor) => visitor.onConnectionLost()],
  ])("is answered with its own Close when %s", (_, end) => {
    const { socket, visitor } = createVisitor();
    visitor.onClosed(CLOSE);
    end(visitor);
    expect([socket.closed, vi.getTimerCount()]).toEqual([[4001, "bye"], 0]);
  });

  test("is answered at once when the agent does not announce that it answers a Close", () => {
    const { link, socket, visitor } = createVisitor();
    link.attachment.hello.answersClose = false;
    visitor.onClosed(CLOSE);
    expect(socket.closed).toEqual([4001, "bye"]);
  });

  test("is granted what the platform has sent, because a closed connection carries no acknowledgements", () => {
    const { link, socket, visitor, receive } = createVisitor("key");
    visitor.onClosed(CLOSE);
    socket.bufferedAmount = STREAM_WINDOW_BYTES;
    for (let i = 0; i < 3; i += 1) receive(new Uint8Array(FRAME_DATA_MAX_BYTES));
    expect(sumCredit(link)).toBe(0);
    socket.bufferedAmount = 0;
    vi.advanceTimersByTime(CLOSE_ANSWER_MAX_MS / 2);
    expect(sumCredit(link)).toBe(3 * FRAME_DATA_MAX_BYTES);
  });

  test("is closed when the local server's last messages are too many, however empty they are", () => {
    const { socket, memory, visitor, receive } = createVisitor("key");
    visitor.onClosed(CLOSE);
    expect(countUntilClosed(socket, () => receive(EMPTY, FRAME.text))).toBeLessThanOrEqual(
      EMPTY_MESSAGES_MAX,
    );
    expect([socket.closed, memory.isFull]).toEqual([[4001, "bye"], false]);
  });

  test("occupies its place until the local server has closed too", () => {
    const { visitor, receive, onDone } = createVisitor();
    visitor.onClosed(CLOSE);
    expect(onDone).not.toHaveBeenCalled();
    receive(close(4002), FRAME.close);
    visitor.onClosed(CLOSE);
    expect(onDone).toHaveBeenCalledOnce();
  });
});

describe("a WebSocket's handshake", () => {
  function startHandshake() {
    const link = new RecordedLink();
    const visitor = new AbortController();
    const handshake = new WebSocketHandshake(
      link as unknown as AgentLink,
      { parts: ["GET", "/"], chars: 4, flags: 0 } as never,
      {
        usage: { countOut: () => {} } as never,
        memory: new SocketMemory(),
        recording: null,
        requestId: "0190",
        signal: visitor.signal,
      },
    );
    return { link, visitor, handshake };
  }

  test("that is followed by too many empty messages at once ends with 1013", () => {
    const { handshake } = startHandshake();
    handshake.onFrame({ type: FRAME.response, flags: 0, stream: STREAM, payload: text("[101]") });
    for (let i = 0; i < EMPTY_MESSAGES_MAX; i += 1)
      handshake.onFrame({ type: FRAME.text, flags: 0, stream: STREAM, payload: EMPTY });
    const { socket, visitor } = createVisitor("key");
    handshake.handOver(visitor);
    expect([socket.closed?.[0], socket.sent]).toEqual([1013, 0]);
  });

  test("that the agent never answers times out, and is reset", async () => {
    const { link, handshake } = startHandshake();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await handshake.outcome).toBe("origin_timeout");
    expect(parseCodeAndText(link.sent(FRAME.reset)[0]!)?.code).toBe(RESET.canceled);
  });

  test("is reset when its visitor disconnects, and leaves no timer", async () => {
    const { link, visitor, handshake } = startHandshake();
    visitor.abort();
    await handshake.outcome;
    expect(link.sent(FRAME.reset)).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});
