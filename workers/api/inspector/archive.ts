/** Streams an HTTP archive entry by entry, so that only a few captures are in memory at a time. */
import type { CaptureDetail } from "../../../protocol/schemas/inspector/captures.ts";
import { toUtf8 } from "../../../shared/bytes.ts";
import type { ApiContext } from "../route.ts";
import { HAR_END, HAR_START, buildHarEntry } from "./har.ts";
import { getTunnelOrigin, readCapture, type TunnelCaptureSummary } from "./captures.ts";

/** The size of an archive beyond which bodies and messages are omitted, with a comment that says so. */
const HAR_WHOLE_MAX_CHARS = 32 * 1024 * 1024;
/** Captured requests that are read at a time while an archive is written: each can be several megabytes. */
const HAR_READ_BATCH_CAPTURES = 4;

export interface ArchiveEntry {
  capture: CaptureDetail;
  origin: string;
}

/** Captures that have been deleted by the time they are read are skipped. */
export async function* readArchiveEntries(
  c: ApiContext,
  listed: TunnelCaptureSummary[],
): AsyncGenerator<ArchiveEntry> {
  for (let at = 0; at < listed.length; at += HAR_READ_BATCH_CAPTURES) {
    const batch = listed.slice(at, at + HAR_READ_BATCH_CAPTURES);
    const captures = await Promise.all(
      batch.map(({ tunnel, summary }) => readCapture(c, tunnel, summary.id)),
    );
    for (const [index, capture] of captures.entries()) {
      if (capture) yield { capture, origin: getTunnelOrigin(c, batch[index]!.tunnel) };
    }
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
