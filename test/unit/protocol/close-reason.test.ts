/** The reason of a Close: what one side formats, the other side parses. */
import { expect, test } from "vitest";
import { CLOSE_REASON_MAX_BYTES } from "../../../protocol/limits.ts";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import { formatCloseReason, parseCloseReason } from "../../../protocol/wire/close-reason.ts";
import { toUtf8 } from "../../../shared/bytes.ts";

test("has the sentence and the subcode apart after it was parsed", () => {
  const reason = formatCloseReason("duplicate_name", "port 40001 is taken", "port_taken");
  expect(reason).toBe("duplicate_name: port 40001 is taken [port_taken]");
  expect(parseCloseReason(CLOSE.duplicate_name, reason)).toEqual({
    message: "port 40001 is taken",
    subcode: "port_taken",
  });
});

test.each([
  ["an older server's, without a subcode", CLOSE.forbidden, "forbidden: no", "no"],
  ["one without the name", CLOSE.forbidden, "no", "no"],
  ["one that ends with a list", CLOSE.forbidden, "forbidden: no [a, b]", "no [a, b]"],
  ["a proxy's", 1011, "forbidden: no [port_taken]", "forbidden: no [port_taken]"],
  ["an empty one", CLOSE.forbidden, "", ""],
])("%s is a sentence only", (_, code, reason, message) => {
  const parsed = parseCloseReason(code, reason);
  expect([parsed.message, parsed.subcode]).toEqual([message, undefined]);
});

test("a sentence that is too long is cut between characters, and its subcode is kept", () => {
  const patterns = "ü-*, ".repeat(60);
  const reason = formatCloseReason("forbidden", patterns, "name_not_allowed");
  expect(toUtf8(reason).byteLength).toBeLessThanOrEqual(CLOSE_REASON_MAX_BYTES);
  const { message, subcode } = parseCloseReason(CLOSE.forbidden, reason);
  expect(subcode).toBe("name_not_allowed");
  expect(message.length).toBeGreaterThan(60);
  expect(patterns.startsWith(message)).toBe(true);
});

test.each([1, 60, 61, 100, 123, 200])(
  "%i characters of several bytes fit into a Close",
  (length) => {
    const reason = formatCloseReason("forbidden", "ü".repeat(length));
    expect(toUtf8(reason).byteLength).toBeLessThanOrEqual(CLOSE_REASON_MAX_BYTES);
  },
);
