/** An HTTP archive as it is sent: entry by entry, so that no more than a few are in memory at once. */
import type { CaptureEvent } from "../../../protocol/schemas/inspector/captures.ts";
import { toUtf8 } from "../../../shared/bytes.ts";
import type { ApiContext } from "../route.ts";
import { HAR_END, HAR_START, buildHarEntry } from "./har.ts";
import { getOrigin, readCapture, type ListedCapture } from "./captures.ts";

/** Of an archive in JSON. From there on bodies and messages are left out, and it says so. */
const HAR_WHOLE_MAX_CHARS = 32 * 1024 * 1024;
/** Captured requests that are read at once while an archive is written: each can be several megabytes. */
const HAR_READ_AT_ONCE = 4;

export interface ArchiveEntry {
  event: CaptureEvent;
  origin: string;
}

/** Those that are still kept when their turn comes. */
export async function* readArchiveEntries(
  c: ApiContext,
  listed: ListedCapture[],
): AsyncGenerator<ArchiveEntry> {
  for (let at = 0; at < listed.length; at += HAR_READ_AT_ONCE) {
    const some = listed.slice(at, at + HAR_READ_AT_ONCE);
    const events = await Promise.all(
      some.map(({ tunnel, summary }) => readCapture(c, tunnel, summary.id)),
    );
    for (const [index, event] of events.entries()) {
      if (event) yield { event, origin: getOrigin(c, some[index]!.tunnel) };
    }
  }
}

export function createArchiveStream(
  entries: AsyncIterable<ArchiveEntry>,
): ReadableStream<Uint8Array> {
  const parts = writeArchive(entries);
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await parts.next();
      if (done) controller.close();
      else controller.enqueue(toUtf8(value));
    },
    async cancel() {
      await parts.return(undefined);
    },
  });
}

async function* writeArchive(
  entries: AsyncIterable<ArchiveEntry>,
): AsyncGenerator<string, undefined> {
  yield HAR_START;
  let chars = 0;
  let separator = "";
  for await (const { event, origin } of entries) {
    const isWhole = chars < HAR_WHOLE_MAX_CHARS;
    const text = JSON.stringify(await buildHarEntry(event, { origin, isComplete }));
    chars += text.length;
    yield separator + text;
    separator = ",";
  }
  yield HAR_END;
}
