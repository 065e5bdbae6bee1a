/** How many WebSocket messages may be on their way: each counts more than its payload. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  MESSAGE_OVERHEAD_BYTES,
  STREAM_RESERVE_BYTES,
  STREAM_WINDOW_BYTES,
} from "../../../protocol/limits.ts";
import { SendWindows } from "../../../protocol/wire/flow-control.ts";

const MESSAGES_MAX = STREAM_WINDOW_BYTES / MESSAGE_OVERHEAD_BYTES;
const STREAM = 1;
const OTHER_STREAM = 2;

/** The window of the connection is that of a stream, so that what one stream uses of it is missing for another. */
const newSender = () => new SendWindows(STREAM_WINDOW_BYTES, STREAM_WINDOW_BYTES);

/** Sends messages until the window is full, at most so many. @returns how many. */
function sendMessages(sender: SendWindows, bytes: number, max = Infinity): number {
  let sent = 0;
  for (; sent < max && sender.available(STREAM) > 0; sent += 1)
    sender.recordMessageSent(STREAM, bytes);
  return sent;
}

test("is bounded, however small they are", () => {
  expect(sendMessages(newSender(), 1)).toBeLessThanOrEqual(MESSAGES_MAX);
});

test("is as many again as the other end has consumed", () => {
  const sender = newSender();
  const sent = sendMessages(sender, 10);
  sender.addCredit(STREAM, 10 * Math.ceil(sent / 2));
  expect(sendMessages(sender, 10)).toBe(Math.ceil(sent / 2));
});

test("is the same as at first once all are credited, whatever their sizes are and in whatever steps", () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat({ max: 1_000 }), { minLength: 1 }),
      fc.integer({ min: 1, max: 500 }),
      (sizes, step) => {
        const sender = newSender();
        for (const size of sizes) sender.recordMessageSent(STREAM, size);
        while (sender.outstanding(STREAM) > 0)
          sender.addCredit(STREAM, Math.min(step, sender.outstanding(STREAM)));
        expect(sender.available(STREAM)).toBe(STREAM_WINDOW_BYTES);
        expect(sender.available(OTHER_STREAM)).toBe(STREAM_WINDOW_BYTES);
      },
    ),
  );
});

test("is not limited by empty ones, for which no credit comes", () => {
  expect(sendMessages(newSender(), 0, 2 * MESSAGES_MAX)).toBe(2 * MESSAGES_MAX);
});

test("counts for the connection beyond the reserve, until the stream has ended within its reserve", () => {
  const sender = newSender();
  sendMessages(sender, 1);
  expect(sender.available(OTHER_STREAM)).toBeLessThan(2 * STREAM_RESERVE_BYTES + 1);
  sender.end(STREAM);
  expect(sender.available(OTHER_STREAM)).toBe(STREAM_WINDOW_BYTES);
});
