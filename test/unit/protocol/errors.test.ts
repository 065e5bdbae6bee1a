import { expect, test } from "vitest";
import { formatRetryMessage } from "../../../protocol/errors.ts";

test.each([
  ["Too many look-ups.", 30, "Too many look-ups. Try again in 30 s."],
  ["Too many look-ups. Try again later.", 600, "Too many look-ups. Try again in 10 min."],
  ["The server restarts. Try again in a moment.", 1, "The server restarts. Try again in 1 s."],
])("%s says once when to try again", (message, seconds, expected) => {
  expect(formatRetryMessage(message, seconds)).toBe(expected);
});
