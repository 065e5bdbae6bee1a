/** What may stand behind `--forward` and `--since`. */
import { expect, test } from "vitest";
import { parseForwardTarget } from "../../agent/webhooks/forward-target.ts";
import { parseSince } from "../../agent/webhooks/since.ts";

test.each([
  ["3000", "http://localhost:3000/"],
  ["3000/hook", "http://localhost:3000/hook"],
  ["localhost:3000/a/b?of=shop&x=%20", "http://localhost:3000/a/b?of=shop&x=%20"],
  ["http://localhost:3000/hook", "http://localhost:3000/hook"],
  ["https://[::1]:8443?x", "https://[::1]:8443/?x"],
  ["http://127.0.0.1/hook", "http://127.0.0.1/hook"],
])("%s is %s", (text, url) => {
  expect(parseForwardTarget(text)?.url).toBe(url);
});

test.each(["", "/hook", "ftp://x/y", "http://user:pw@host/", "3000#part", "http://", "0/x"])(
  "%j is nowhere to forward to",
  (text) => {
    expect(parseForwardTarget(text)).toBeNull();
  },
);

test("a moment, a time ago and all are when to start from", () => {
  const now = Date.parse("2026-03-01T12:00:00Z");
  expect(parseSince("all", now)).toBe("all");
  expect(parseSince("90s", now)).toBe("2026-03-01T11:58:30.000Z");
  expect(parseSince("30m", now)).toBe("2026-03-01T11:30:00.000Z");
  expect(parseSince("2h", now)).toBe("2026-03-01T10:00:00.000Z");
  expect(parseSince("7d", now)).toBe("2026-02-22T12:00:00.000Z");
  expect(parseSince("2026-02-28T12:00:00+01:00", now)).toBe("2026-02-28T11:00:00.000Z");
  for (const text of ["", "yesterday", "2", "2w", "-2h", "2026-02-28", "2026-13-41T00:00:00Z"]) {
    expect([text, parseSince(text, now)]).toEqual([text, null]);
  }
});
