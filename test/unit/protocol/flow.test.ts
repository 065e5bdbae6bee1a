import { describe, expect, test } from "vitest";
import { ReceiveWindow, SendWindows } from "../../../protocol/wire/flow.ts";
import {
  CONNECTION_WINDOW_BYTES,
  CREDIT_GRANT_BYTES,
  STREAM_RESERVE_BYTES,
  STREAM_WINDOW_BYTES,
} from "../../../protocol/limits.ts";
import { createRandom } from "../../harness/random.ts";

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
});

/** One stream of the exchange below: its receiver's window, and the bytes in flight. */
interface Flow {
  receiver: ReceiveWindow;
  outstanding: number;
  held: number;
  ended: boolean;
  dropped: boolean;
}

test.each([11, 12, 13, 14, 15])(
  "two ends keep within every window and leave nothing behind, in any order (seed %i)",
  (seed) => {
    const random = createRandom(seed);
    const sender = newSender();
    const flows = new Map<number, Flow>();
    /** Credits in flight to the sender. They may arrive after their stream was dropped. */
    const credits: { stream: number; bytes: number }[] = [];

    function consume(stream: number, flow: Flow, bytes: number): void {
      flow.held -= bytes;
      const grant = flow.receiver.recordConsumed(bytes);
      if (grant > 0) credits.push({ stream, bytes: grant });
    }

    function deliverCredit(): void {
      const [credit] = credits.splice(random.below(credits.length), 1);
      const flow = flows.get(credit!.stream)!;
      expect(sender.addCredit(credit!.stream, credit!.bytes)).toBe(true);
      if (!flow.dropped) flow.outstanding -= credit!.bytes;
    }

    for (let step = 0; step < 10_000; step += 1) {
      const stream = 1 + random.below(step / 100 + 20);
      let flow = flows.get(stream);
      if (!flow) {
        flow = {
          receiver: new ReceiveWindow(STREAM_WINDOW_BYTES),
          outstanding: 0,
          held: 0,
          ended: false,
          dropped: false,
        };
        flows.set(stream, flow);
      }
      const action = random.below(100);
      if (action < 45 && !flow.ended && !flow.dropped) {
        const bytes = Math.min(sender.available(stream), random.below(400_000));
        if (bytes > 0) {
          sender.recordSent(stream, bytes);
          flow.outstanding += bytes;
          flow.held += bytes;
          expect(flow.receiver.recordReceived(bytes)).toBe(true);
        }
      } else if (action < 75 && flow.held > 0 && !flow.dropped) {
        consume(stream, flow, 1 + random.below(flow.held));
      } else if (action < 95) {
        if (credits.length > 0) deliverCredit();
      } else if (action < 98 && !flow.ended && !flow.dropped) {
        flow.ended = true;
        sender.end(stream);
        flow.receiver.end();
      } else if (action === 98 && !flow.dropped) {
        flow.dropped = true;
        flow.outstanding = 0;
        sender.drop(stream);
      }
      let shared = 0;
      for (const { outstanding } of flows.values())
        shared += Math.max(0, outstanding - STREAM_RESERVE_BYTES);
      expect(flow.outstanding).toBeLessThanOrEqual(STREAM_WINDOW_BYTES);
      expect(shared).toBeLessThanOrEqual(CONNECTION_WINDOW_BYTES);
    }

    for (const [stream, flow] of flows) {
      if (flow.dropped) continue;
      if (!flow.ended) {
        sender.end(stream);
        flow.receiver.end();
      }
      if (flow.held > 0) consume(stream, flow, flow.held);
    }
    while (credits.length > 0) deliverCredit();
    expect(countConnectionWindow(sender)).toBe(CONNECTION_WINDOW_BYTES);
  },
);
