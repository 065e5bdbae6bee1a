import { gzipSync } from "node:zlib";
import { afterEach, expect, test, vi } from "vitest";
import {
  createArchiveStream,
  readArchiveEntries,
  type ArchiveSource,
} from "../../../../../workers/api/inspector/archive.ts";
import type { TunnelCaptureSummary } from "../../../../../workers/api/inspector/captures.ts";
import { buildCapture } from "../../../../harness/tunnel/capture.ts";

afterEach(() => void vi.unstubAllGlobals());

const ANSWER_CAPTURES = 3;

/** Objects that answer with three captures at most, and have lost those whose ids end with 7. */
function createSource(events: string[]): ArchiveSource {
  const stored = (id: string) => (id.endsWith("7") ? null : buildCapture({ id }));
  return {
    read: (tunnel, ids) => {
      events.push(`${tunnel.id} reads`);
      return Promise.resolve(ids.slice(0, ANSWER_CAPTURES).map(stored));
    },
    getOrigin: ({ subdomain }) => `https://${subdomain}.example.com`,
  };
}

test("an archive reads the next requests of a tunnel together, and lets others go first before each read", async () => {
  const events: string[] = [];
  vi.stubGlobal("scheduler", { wait: () => Promise.resolve(events.push("rest")) });
  const listed = Array.from({ length: 10 }, (_, index) => {
    const name = index < 8 && index % 2 === 0 ? "one" : "other";
    return { tunnel: { id: name, subdomain: name }, summary: buildCapture({ id: `id-${index}` }) };
  }) satisfies TunnelCaptureSummary[];
  const entries: string[] = [];
  for await (const { capture, origin } of readArchiveEntries(listed, createSource(events))) {
    entries.push(`${origin} ${capture.id}`);
  }
  expect(entries).toEqual(
    listed
      .filter((_, index) => index !== 7)
      .map(({ tunnel, summary }) => `https://${tunnel.subdomain}.example.com ${summary.id}`),
  );
  const reads = ["one reads", "other reads", "one reads", "other reads"];
  expect(events).toEqual(reads.flatMap((read) => ["rest", read]));
});

const MIB = 1024 * 1024;

test("a body that takes time to decompress counts, also if it is too large to be included, and lets others go first", async () => {
  let rests = 0;
  vi.stubGlobal("scheduler", { wait: () => Promise.resolve((rests += 1)) });
  const bomb = gzipSync(Buffer.alloc(3 * MIB));
  const capture = buildCapture(
    { response_headers: { "content-encoding": "gzip" } },
    { answered: bomb },
  );
  async function* listEntries() {
    for (let at = 0; at < 40; at += 1) yield await Promise.resolve({ capture, origin: "" });
  }
  const { log } = (await new Response(createArchiveStream(listEntries())).json()) as {
    log: { entries: { response: { content: { comment: string } } }[] };
  };
  const comments = log.entries.map(({ response }) => response.content.comment);
  const decompressed = comments.filter((comment) => comment === "not decompressed: gzip").length;
  // Each is read to a little more than 2 MiB, where it is too large.
  expect(decompressed).toBe(16);
  expect(comments.slice(decompressed)).toEqual(
    Array(40 - decompressed).fill(expect.stringMatching(/^omitted/)),
  );
  expect(rests).toBe(decompressed);
});
