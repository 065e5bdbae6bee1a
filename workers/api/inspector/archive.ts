/** Streams an HTTP archive, so that only a few captures are in memory at a time. */
import type { CaptureDetail } from "../../../protocol/schemas/inspector/captures.ts";
import { toUtf8 } from "../../../shared/bytes.ts";
import type { InspectedTunnel } from "../../store/inspector/inspector.ts";
import { HAR_END, HAR_START, buildHarEntry } from "./har.ts";
import type { TunnelCaptureSummary } from "./captures.ts";

/**
 * The size of an archive beyond which bodies and messages are omitted, with a comment that says so. An entry counts as what was
 * decompressed for it, if that is more than its text: a local server can send bodies that are not small enough to be included.
 */
const HAR_WHOLE_MAX_CHARS = 32 * 1024 * 1024;
/** Other events are handled after entries of this size together, as `HAR_WHOLE_MAX_CHARS` counts them. */
const HAR_REST_CHARS = 512 * 1024;
/** This many requests of the list are looked at together: those of one tunnel are read in one call, if they fit into one answer. */
const HAR_READ_AHEAD_CAPTURES = 64;
/** Text that is written together: a chunk costs as much as many entries. */
const HAR_CHUNK_CHARS = 64 * 1024;

interface ArchiveEntry {
  capture: CaptureDetail;
  origin: string;
}

export interface ArchiveSource {
  /** @returns the first of the captures, at least one; null for those that are no longer stored. */
  read(tunnel: InspectedTunnel, ids: string[]): Promise<(CaptureDetail | null)[]>;
  getOrigin(tunnel: InspectedTunnel): string;
}

/** Captures that have been deleted by the time they are read are skipped. */
export async function* readArchiveEntries(
  listed: TunnelCaptureSummary[],
  source: ArchiveSource,
): AsyncGenerator<ArchiveEntry> {
  /** Captures that are read and not written yet. */
  const read = new Map<string, CaptureDetail | null>();
  for (const [index, { tunnel, summary }] of listed.entries()) {
    if (!read.has(summary.id)) {
      const ids = listed
        .slice(index, index + HAR_READ_AHEAD_CAPTURES)
        .filter((next) => next.tunnel.id === tunnel.id)
        .map((next) => next.summary.id);
      // Other events are handled first: reading an answer and writing its entries takes some 10 ms.
      await scheduler.wait(0);
      const captures = await source.read(tunnel, ids);
      for (const [at, capture] of captures.entries()) read.set(ids[at]!, capture);
    }
    const capture = read.get(summary.id);
    read.delete(summary.id);
    if (capture) yield { capture, origin: source.getOrigin(tunnel) };
  }
}

export function createArchiveStream(
  entries: AsyncIterable<ArchiveEntry>,
): ReadableStream<Uint8Array> {
  const chunks = writeArchive(entries);
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(toUtf8(value));
    },
    async cancel() {
      await chunks.return(undefined);
    },
  });
}

async function* writeArchive(
  entries: AsyncIterable<ArchiveEntry>,
): AsyncGenerator<string, undefined> {
  let chunk = HAR_START;
  let chars = 0;
  let restedAtChars = 0;
  let separator = "";
  for await (const { capture, origin } of entries) {
    const includesBodies = chars < HAR_WHOLE_MAX_CHARS;
    let decompressed = 0;
    const onDecompressed = (bytes: number) => void (decompressed += bytes);
    const options = { origin, includesBodies, onDecompressed };
    const text = JSON.stringify(await buildHarEntry(capture, options));
    chars += Math.max(text.length, decompressed);
    chunk += separator + text;
    separator = ",";
    if (chars - restedAtChars >= HAR_REST_CHARS) {
      restedAtChars = chars;
      await scheduler.wait(0);
    }
    if (chunk.length < HAR_CHUNK_CHARS) continue;
    yield chunk;
    chunk = "";
  }
  yield chunk + HAR_END;
}
