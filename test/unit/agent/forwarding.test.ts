/** The values of `--forward` and `--since`, and which deliveries they forward. */
import { expect, test } from "vitest";
import type { Delivery, ReceiverState } from "../../../protocol/schemas/webhooks.ts";
import { Forwarder, type ReceiverSource } from "../../../agent/webhooks/forwarder.ts";
import { parseForwardTarget } from "../../../agent/webhooks/forward-target.ts";
import { parseSince } from "../../../agent/since.ts";

test.each([
  ["3000", "http://localhost:3000/"],
  ["3000/hook", "http://localhost:3000/hook"],
  ["localhost:3000/a/b?of=shop&x=%20", "http://localhost:3000/a/b?of=shop&x=%20"],
  ["http://localhost:3000/hook", "http://localhost:3000/hook"],
  ["https://[::1]:8443?x", "https://[::1]:8443/?x"],
  ["http://127.0.0.1/hook", "http://127.0.0.1/hook"],
  ["3000//host/hook", "http://localhost:3000//host/hook"],
  ["unix:/run/app.sock", "unix:/run/app.sock"],
  ["unix:///run/app.sock:/hook?of=a:/b", "unix:/run/app.sock:/hook?of=a:/b"],
  [" UNIX:/run/a:b.sock:/ ", "unix:/run/a:b.sock:/"],
])("--forward %s posts to %s", (text, url) => {
  expect(parseForwardTarget(text)?.url).toBe(url);
});

test.each([
  ...["", "/hook", "ftp://x/y", "http://user:pw@host/", "3000#part", "http://", "0/x"],
  "unix:/run/app.sock:/hook#part",
])("--forward rejects %j", (text) => {
  expect(parseForwardTarget(text)).toBeNull();
});

test("--forward rejects a socket on which no server can listen", () => {
  expect(() => parseForwardTarget("unix::/hook")).toThrow("unix: needs the path of a socket");
  expect(() => parseForwardTarget(`unix:${import.meta.filename}:/hook`)).toThrow("is not a socket");
});

test("--since accepts a timestamp, an age and `all`", () => {
  const now = Date.parse("2026-03-01T12:00:00Z");
  expect(parseSince("all", now)).toBe("all");
  expect(parseSince("90s", now)).toBe("2026-03-01T11:58:30.000Z");
  expect(parseSince("30m", now)).toBe("2026-03-01T11:30:00.000Z");
  expect(parseSince("2h", now)).toBe("2026-03-01T10:00:00.000Z");
  expect(parseSince("7d", now)).toBe("2026-02-22T12:00:00.000Z");
  expect(parseSince("999999d", now)).toBe("1970-01-01T00:00:00.000Z");
  expect(parseSince("2026-02-28T12:00:00+01:00", now)).toBe("2026-02-28T11:00:00.000Z");
  for (const text of ["", "yesterday", "2", "2w", "-2h", "2026-02-28", "2026-13-41T00:00:00Z"]) {
    expect([text, parseSince(text, now)]).toEqual([text, null]);
  }
});

/** @returns the ids of the forwarded deliveries, of three that were received at 10:00, 11:00 and 12:00. */
async function forwardFrom(acknowledged: string, since: string): Promise<string[]> {
  const stored = [10, 11, 12].map((hour, at): Delivery => {
    const receivedAt = `2026-03-01T${hour}:00:00.000Z`;
    const rest = { headers: {}, body: "", contentType: null };
    return { id: `at-${hour}`, receivedAt, ...rest, cursor: String(at + 1) };
  });
  const source: ReceiverSource = {
    find: () => Promise.resolve({ id: "shop", acknowledged } as ReceiverState),
    readDeliveries: (_, { after, since: from = "" }) => {
      const isWanted = ({ cursor, receivedAt }: Delivery) => cursor > after && receivedAt >= from;
      const events = stored.filter(isWanted);
      return Promise.resolve({ events, cursor: events.at(-1)?.cursor ?? after });
    },
    acknowledge: () => Promise.resolve(),
  };
  const ids: string[] = [];
  const post = ({ id }: Delivery) => {
    ids.push(id);
    if (id === "at-12") forwarder.stop();
    return Promise.resolve({ status: 200, durationMs: 1, isUnsent: false });
  };
  const forwarder = new Forwarder(source, { post }, { receiver: "shop", since });
  await forwarder.run();
  return ids;
}

test("--since starts earlier, and never skips deliveries that are not acknowledged", async () => {
  const noon = "2026-03-01T12:00:00.000Z";
  const eleven = "2026-03-01T11:00:00.000Z";
  expect(await forwardFrom("1", noon)).toEqual(["at-11", "at-12"]);
  expect(await forwardFrom("0", noon)).toEqual(["at-10", "at-11", "at-12"]);
  expect(await forwardFrom("2", noon)).toEqual(["at-12"]);
  expect(await forwardFrom("3", eleven)).toEqual(["at-11", "at-12"]);
  expect(await forwardFrom("2", "all")).toEqual(["at-10", "at-11", "at-12"]);
});
