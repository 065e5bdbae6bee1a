/** Which requests an agent keeps for replays, and how much memory they take at most. */
import { expect, test } from "vitest";
import { createReport } from "../../harness/agent/request-report.ts";
import {
  STORED_BODY_MAX_BYTES,
  STORED_MAX_BYTES,
  StoredRequests,
} from "../../../agent/origin/stored-requests.ts";

const HEAD = ["POST", "/", "host", "shop.test"];

/** Adds a request with one chunk of body. */
function addRequest(stored: StoredRequests, bodyBytes: number, isLast = true) {
  const report = createReport("/");
  stored.add(report, HEAD, true);
  report.bytesIn += bodyBytes;
  stored.addBody(report, new Uint8Array(bodyBytes).fill(7), isLast);
  return report;
}

test("keeps head and body, a copy of the bytes", () => {
  const stored = new StoredRequests();
  const withoutBody = createReport("/");
  stored.add(withoutBody, HEAD, false);
  expect(stored.find(withoutBody)).toEqual({ head: HEAD, body: null });
  const report = createReport("/");
  const payload = Buffer.from("ab");
  stored.add(report, HEAD, true);
  stored.addBody(report, payload, false);
  payload.fill(0);
  expect(stored.find(report)).toBe("incomplete");
  stored.addBody(report, Buffer.from("c"), true);
  expect(stored.find(report)).toEqual({ head: HEAD, body: Buffer.from("abc") });
});

test("recognizes the end of a body by its length too, because the mark of the end may come later", () => {
  const stored = new StoredRequests();
  const report = createReport("/");
  stored.add(report, [...HEAD, "Content-Length", "2"], true);
  report.bytesIn = 1;
  stored.addBody(report, Buffer.from("a"), false);
  expect(stored.find(report)).toBe("incomplete");
  report.bytesIn = 2;
  stored.addBody(report, Buffer.from("b"), false);
  expect(stored.find(report)).toMatchObject({ body: Buffer.from("ab") });
});

test("keeps no body that is larger than the limit for one", () => {
  const stored = new StoredRequests();
  expect(stored.find(addRequest(stored, STORED_BODY_MAX_BYTES))).toMatchObject({ head: HEAD });
  expect(stored.find(addRequest(stored, STORED_BODY_MAX_BYTES + 1))).toBe("too_large");
  const grown = addRequest(stored, STORED_BODY_MAX_BYTES, false);
  grown.bytesIn += 1;
  stored.addBody(grown, new Uint8Array(1), true);
  expect(stored.find(grown)).toBe("too_large");
});

test("keeps fewer requests with many tiny headers, or with a body in tiny chunks, than their characters would allow", () => {
  const stored = new StoredRequests();
  const countKept = (add: () => ReturnType<typeof createReport>) => {
    const reports = Array.from({ length: 10_000 }, add);
    return reports.filter((report) => stored.find(report) !== "forgotten").length;
  };
  const tiny = ["GET", "/", ...Array.from({ length: 100 }, (_, i) => [`x${i}`, ""]).flat()];
  const withTinyHeaders = countKept(() => {
    const report = createReport("/");
    stored.add(report, tiny, false);
    return report;
  });
  // A text takes some 30 bytes, a chunk some 200.
  expect(withTinyHeaders).toBeLessThan(STORED_MAX_BYTES / (tiny.length * 30));
  const withTinyChunks = countKept(() => {
    const report = createReport("/");
    stored.add(report, HEAD, true);
    for (let i = 0; i < 20; i += 1) stored.addBody(report, new Uint8Array(1), i === 19);
    return report;
  });
  expect(withTinyChunks).toBeLessThan(STORED_MAX_BYTES / (20 * 200));
});

test("forgets the oldest requests at the limit for all, large heads too", () => {
  const stored = new StoredRequests();
  const fitting = STORED_MAX_BYTES / STORED_BODY_MAX_BYTES - 1;
  const reports = Array.from({ length: fitting + 1 }, () =>
    addRequest(stored, STORED_BODY_MAX_BYTES),
  );
  expect(stored.find(reports[0]!)).toBe("forgotten");
  expect(stored.find(reports[1]!)).toMatchObject({ head: HEAD });
  const heads = Array.from({ length: 200 }, () => {
    const report = createReport("/");
    stored.add(report, ["GET", `/${"x".repeat(100_000)}`], false);
    return report;
  });
  expect(heads.filter((report) => stored.find(report) !== "forgotten")).toHaveLength(
    Math.floor(STORED_MAX_BYTES / 100_004),
  );
  expect(reports.every((report) => stored.find(report) === "forgotten")).toBe(true);
});
