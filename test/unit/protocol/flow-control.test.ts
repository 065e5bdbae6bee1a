import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ReceiveWindow, SendWindows } from "../../../protocol/wire/flow-control.ts";
import {
  CONNECTION_WINDOW_BYTES,
  CREDIT_GRANT_BYTES,
  STREAM_RESERVE_BYTES,
  STREAM_WINDOW_BYTES,
} from "../../../protocol/limits.ts";

const newSender = () => new SendWindows(STREAM_WINDOW_BYTES, CONNECTION_WINDOW_BYTES);

/** Sends until the stream's window is full. @returns the number of bytes. */
function fill(sender: SendWindows, stream: number): number {
  const bytes = sender.available(stream);
  if (bytes > 0) sender.recordSent(stream, bytes);
  return Math.max(0, bytes);
}

/** The remaining bytes of the connection's window, as a new stream sees it. */
function countConnectionWindow(sender: SendWindows): number {
  const streams = CONNECTION_WINDOW_BYTES / (STREAM_WINDOW_BYTES - STREAM_RESERVE_BYTES) + 2;
  let left = 0;
  const probes = Array.from({ length: Math.ceil(streams) }, (_, i) => 0x7000_0000 + i);
  for (const probe of probes) left += Math.max(0, fill(sender, probe) - STREAM_RESERVE_BYTES);
  for (const probe of probes) sender.drop(probe);
  return left;
}

describe("a sender", () => {
  test("sends at most the window of a stream", () => {
    const sender = newSender();
    expect(fill(sender, 1)).toBe(STREAM_WINDOW_BYTES);
    expect(sender.available(1)).toBe(0);
    expect(sender.addCredit(1, 10)).toBe(true);
    expect(sender.available(1)).toBe(10);
  });

  test("keeps all streams together within the connection's window and their reserves", () => {
    const sender = newSender();
    let sent = 0;
    for (let stream = 1; stream <= 64; stream += 1) sent += fill(sender, stream);
    expect(sent).toBe(CONNECTION_WINDOW_BYTES + 64 * STREAM_RESERVE_BYTES);
  });

  test("still carries a small stream when 64 stalled ones have filled the connection", () => {
    const sender = newSender();
    for (let stream = 1; stream <= 64; stream += 1) fill(sender, stream);
    for (let stream = 65; stream <= 1_000; stream += 1)
      expect(sender.available(stream)).toBe(STREAM_RESERVE_BYTES);
  });

  test("sends nothing while its socket has a backlog, and then lets the streams that wait continue in turn", () => {
    const sender = newSender();
    sender.recordSent(1, 10);
    sender.pause();
    const resumed: number[] = [];
    const wait = (stream: number): void =>
      sender.whenAvailable(stream, () => {
        resumed.push(stream);
        // The first one fills the socket again.
        if (resumed.length === 1) sender.pause();
      });
    // Stream 2 has sent nothing before.
    for (const stream of [1, 2]) wait(stream);
    sender.addCredit(1, 10);
    expect(sender.available(1)).toBe(0);
    expect(resumed).toEqual([]);
    sender.resume();
    expect(resumed).toEqual([1]);
    sender.resume();
    expect(resumed).toEqual([1, 2]);
    expect(sender.available(2)).toBe(STREAM_WINDOW_BYTES);
  });

  test("refuses credit for more than it sent", () => {
    const sender = newSender();
    sender.recordSent(1, 100);
    expect(sender.addCredit(1, 101)).toBe(false);
    expect(sender.addCredit(1, 100)).toBe(true);
    expect(sender.addCredit(1, 1)).toBe(false);
  });

  test("ignores late credit for a stream that has ended", () => {
    const sender = newSender();
    sender.recordSent(1, STREAM_WINDOW_BYTES);
    sender.drop(1);
    expect(sender.addCredit(1, STREAM_WINDOW_BYTES)).toBe(true);
    expect(countConnectionWindow(sender)).toBe(CONNECTION_WINDOW_BYTES);
  });

  test("counts an ended stream until the other end has consumed it", () => {
    const sender = newSender();
    sender.recordSent(1, STREAM_WINDOW_BYTES);
    sender.end(1);
    const windowBytes = STREAM_WINDOW_BYTES - STREAM_RESERVE_BYTES;
    expect(countConnectionWindow(sender)).toBe(CONNECTION_WINDOW_BYTES - windowBytes);
    sender.addCredit(1, STREAM_WINDOW_BYTES);
    expect(countConnectionWindow(sender)).toBe(CONNECTION_WINDOW_BYTES);
  });

  test("resumes a sender that waits for its stream once, when it may send", () => {
    const sender = newSender();
    fill(sender, 1);
    let resumeCount = 0;
    sender.whenAvailable(1, () => (resumeCount += 1));
    expect(resumeCount).toBe(0);
    sender.addCredit(1, 1);
    sender.addCredit(1, 1);
    expect(resumeCount).toBe(1);
  });

  test("resumes a sender that waits for the connection when another stream ends", () => {
    const sender = newSender();
    for (let stream = 1; stream <= 64; stream += 1) fill(sender, stream);
    let resumed = false;
    sender.whenAvailable(64, () => (resumed = true));
    sender.drop(1);
    expect(resumed).toBe(true);
    expect(sender.available(64)).toBeGreaterThan(0);
  });

  test("resumes a sender whose own window was full only with its own credit, and one that then waits for the connection", () => {
    const sender = newSender();
    for (let stream = 1; stream <= 64; stream += 1) fill(sender, stream);
    const resumed: number[] = [];
    for (const stream of [1, 64]) sender.whenAvailable(stream, () => resumed.push(stream));
    sender.addCredit(2, 1);
    expect(resumed).toEqual([64]);
    fill(sender, 64);
    sender.addCredit(1, 1);
    expect(resumed).toEqual([64, 1]);
  });

  test("handles a million credits of one byte while a thousand streams wait, without looking at all of them each time", () => {
    const sender = newSender();
    for (let stream = 1; stream <= 1_000; stream += 1) fill(sender, stream);
    let resumeCount = 0;
    for (let stream = 1; stream <= 1_000; stream += 1)
      sender.whenAvailable(stream, () => {
        resumeCount += 1;
        fill(sender, stream);
      });
    for (let i = 0; i < 1_000_000; i += 1) sender.addCredit(1 + (i % 8), 1);
    expect(resumeCount).toBeLessThanOrEqual(1_000);
  });

  test("reports how many bytes are outstanding in total", () => {
    let total = 0;
    const sender = new SendWindows(
      STREAM_WINDOW_BYTES,
      CONNECTION_WINDOW_BYTES,
      (bytes) => (total += bytes),
    );
    sender.recordSent(1, 50_000);
    sender.recordSent(2, 100);
    sender.addCredit(1, 10_000);
    expect(total).toBe(40_100);
    sender.end(2);
    expect(total).toBe(40_000);
    sender.drop(1);
    expect(total).toBe(0);
  });

  test("resumes all waiting senders when the stream or the connection has ended", () => {
    const sender = newSender();
    const resumed: number[] = [];
    for (const stream of [1, 2, 3]) {
      fill(sender, stream);
      sender.whenAvailable(stream, () => resumed.push(stream));
    }
    sender.drop(2);
    expect(resumed).toEqual([2]);
    sender.close();
    expect(resumed).toEqual([2, 1, 3]);
  });
});

describe("a receiver", () => {
  test("accepts a full window and rejects one more byte", () => {
    const receiver = new ReceiveWindow(STREAM_WINDOW_BYTES);
    expect(receiver.recordReceived(STREAM_WINDOW_BYTES)).toBe(true);
    expect(receiver.recordReceived(1)).toBe(false);
  });

  test("counts consumed bytes that it has not credited against the sender", () => {
    const receiver = new ReceiveWindow(STREAM_WINDOW_BYTES);
    receiver.recordReceived(STREAM_WINDOW_BYTES);
    expect(receiver.recordConsumed(CREDIT_GRANT_BYTES - 1)).toBe(0);
    expect(receiver.recordReceived(1)).toBe(false);
  });

  test("credits in large steps, and everything at the end", () => {
    const receiver = new ReceiveWindow(STREAM_WINDOW_BYTES);
    receiver.recordReceived(CREDIT_GRANT_BYTES + 5);
    expect(receiver.recordConsumed(CREDIT_GRANT_BYTES - 1)).toBe(0);
    expect(receiver.recordConsumed(1)).toBe(CREDIT_GRANT_BYTES);
    receiver.end();
    expect(receiver.recordConsumed(5)).toBe(5);
  });

  test("sends no credit for an ended stream that fits into its reserve", () => {
    const receiver = new ReceiveWindow(STREAM_WINDOW_BYTES);
    receiver.recordReceived(STREAM_RESERVE_BYTES);
    receiver.end();
    expect(receiver.recordConsumed(STREAM_RESERVE_BYTES)).toBe(0);
  });

  test("credits what a stream beyond its reserve had consumed before its end", () => {
    const sender = newSender();
    const receiver = new ReceiveWindow(STREAM_WINDOW_BYTES);
    const bytes = STREAM_RESERVE_BYTES + 1;
    sender.recordSent(1, bytes);
    receiver.recordReceived(bytes);
    sender.addCredit(1, receiver.recordConsumed(bytes));
    sender.end(1);
    sender.addCredit(1, receiver.end());
    expect(countConnectionWindow(sender)).toBe(CONNECTION_WINDOW_BYTES);
  });
});

/** One stream of the exchange below: its receiver's window, and the bytes in flight. */
interface Flow {
  receiver: ReceiveWindow;
  outstanding: number;
  held: number;
  ended: boolean;
  dropped: boolean;
}

/** A sender and the receivers of its streams, with credits in flight between them. */
class Exchange {
  readonly #sender = newSender();
  readonly #flows = new Map<number, Flow>();
  /** Credits in flight to the sender. They may arrive in any order, and after their stream was dropped. */
  readonly #credits: { stream: number; bytes: number }[] = [];

  /** Sends at most `bytes`, as far as the windows permit. */
  send(stream: number, bytes: number): void {
    const flow = this.#open(stream);
    const sent = Math.min(this.#sender.available(stream), bytes);
    if (flow.ended || flow.dropped || sent <= 0) return;
    this.#sender.recordSent(stream, sent);
    flow.outstanding += sent;
    flow.held += sent;
    expect(flow.receiver.recordReceived(sent)).toBe(true);
  }

  /** Consumes at most `bytes`. */
  consume(stream: number, bytes: number): void {
    const flow = this.#open(stream);
    const consumed = Math.min(flow.held, bytes);
    if (flow.dropped || consumed <= 0) return;
    flow.held -= consumed;
    this.#credit(stream, flow.receiver.recordConsumed(consumed));
  }

  deliverCredit(index: number): void {
    if (this.#credits.length === 0) return;
    const [credit] = this.#credits.splice(index % this.#credits.length, 1);
    const flow = this.#open(credit!.stream);
    expect(this.#sender.addCredit(credit!.stream, credit!.bytes)).toBe(true);
    if (!flow.dropped) flow.outstanding -= credit!.bytes;
  }

  end(stream: number): void {
    const flow = this.#open(stream);
    if (flow.ended || flow.dropped) return;
    flow.ended = true;
    this.#sender.end(stream);
    this.#credit(stream, flow.receiver.end());
  }

  drop(stream: number): void {
    const flow = this.#open(stream);
    if (flow.dropped) return;
    flow.dropped = true;
    flow.outstanding = 0;
    this.#sender.drop(stream);
  }

  expectWithinWindows(): void {
    let [longest, shared] = [0, 0];
    for (const { outstanding } of this.#flows.values()) {
      longest = Math.max(longest, outstanding);
      shared += Math.max(0, outstanding - STREAM_RESERVE_BYTES);
    }
    expect(longest).toBeLessThanOrEqual(STREAM_WINDOW_BYTES);
    expect(shared).toBeLessThanOrEqual(CONNECTION_WINDOW_BYTES);
  }

  /** Ends all streams, and consumes and credits everything. */
  finish(): void {
    for (const stream of this.#flows.keys()) {
      this.end(stream);
      this.consume(stream, STREAM_WINDOW_BYTES);
    }
    while (this.#credits.length > 0) this.deliverCredit(0);
    expect(countConnectionWindow(this.#sender)).toBe(CONNECTION_WINDOW_BYTES);
  }

  #credit(stream: number, bytes: number): void {
    if (bytes > 0) this.#credits.push({ stream, bytes });
  }

  #open(stream: number): Flow {
    const flow = this.#flows.get(stream) ?? {
      receiver: new ReceiveWindow(STREAM_WINDOW_BYTES),
      outstanding: 0,
      held: 0,
      ended: false,
      dropped: false,
    };
    this.#flows.set(stream, flow);
    return flow;
  }
}

const METHODS = [
  { weight: 45, value: "send" },
  { weight: 30, value: "consume" },
  { weight: 20, value: "deliverCredit" },
  { weight: 3, value: "end" },
  { weight: 1, value: "drop" },
] as const;

test("two ends keep within every window and leave nothing behind, in any order", () => {
  // Enough streams to fill the connection's window, also when some have ended.
  const stream = fc.integer({ min: 1, max: 60 });
  const bytes = fc.nat(400_000);
  const steps = fc.array(
    fc.oneof(
      ...METHODS.map(({ weight, value }) => ({
        weight,
        arbitrary: fc.tuple(fc.constant(value), stream, bytes),
      })),
    ),
    { maxLength: 1_000, size: "max" },
  );
  fc.assert(
    fc.property(steps, (calls) => {
      const exchange = new Exchange();
      for (const [method, ...values] of calls) {
        exchange[method](...values);
        exchange.expectWithinWindows();
      }
      exchange.finish();
    }),
    // The limit is for shrinking, which can take minutes.
    { seed: 11, numRuns: 100, interruptAfterTimeLimit: 60_000 },
  );
});
