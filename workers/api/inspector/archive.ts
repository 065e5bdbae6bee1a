/** Streams an HTTP archive entry by entry, so that only a few captures are in memory at a time. */
import type { CaptureDetail } from "../../../protocol/schemas/inspector/captures.ts";
import { toUtf8 } from "../../../shared/bytes.ts";
import type { ApiContext } from "../route.ts";
import { HAR_END, HAR_START, buildHarEntry } from "./har.ts";
import { getTunnelOrigin, readCaptures, type TunnelCaptureSummary } from "./captures.ts";

/** The size of an archive beyond which bodies and messages are omitted, with a comment that says so. */
const HAR_WHOLE_MAX_CHARS = 32 * 1024 * 1024;
/** Captured requests that are read at a time while an archive is written. Visitors wait for as long as it takes to read them. */
const HAR_READ_BATCH_CAPTURES = 16;
/** Of the bodies in a batch, unless one capture alone is larger. */
const HAR_READ_BATCH_BYTES = 512 * 1024;

export interface ArchiveEntry {
  capture: CaptureDetail;
  origin: string;
}

/** Captures that have been deleted by the time they are read are skipped. */
export async function* readArchiveEntries(
  c: ApiContext,
  listed: TunnelCaptureSummary[],
): AsyncGenerator<ArchiveEntry> {
  for (const batch of splitIntoBatches(listed)) {
    const tunnels = new Map(batch.map(({ tunnel }) => [tunnel.id, tunnel]));
    const reads = [...tunnels.values()].map((tunnel) => {
      const own = batch.filter((one) => one.tunnel.id === tunnel.id);
      return readCaptures(
        c,
        tunnel,
        own.map(({ summary }) => summary.id),
      );
    });
    const captures = new Map((await Promise.all(reads)).flat().map((one) => [one.id, one]));
    for (const { tunnel, summary } of batch) {
      const capture = captures.get(summary.id);
      if (capture) yield { capture, origin: getTunnelOrigin(c, tunnel) };
    }
  }
}

function* splitIntoBatches(listed: TunnelCaptureSummary[]): Generator<TunnelCaptureSummary[]> {
  let batch: TunnelCaptureSummary[] = [];
  let bytes = 0;
  for (const one of listed) {
    const size = one.summary.request_size + one.summary.response_size;
    const isFull = batch.length === HAR_READ_BATCH_CAPTURES || bytes + size > HAR_READ_BATCH_BYTES;
    if (isFull && batch.length > 0) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(one);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
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
  yield HAR_START;
  let chars = 0;
  let separator = "";
  for await (const { capture, origin } of entries) {
    const includesBodies = chars < HAR_WHOLE_MAX_CHARS;
    const text = JSON.stringify(await buildHarEntry(capture, { origin, includesBodies }));
    chars += text.length;
    yield separator + text;
    separator = ",";
  }
  yield HAR_END;
}
