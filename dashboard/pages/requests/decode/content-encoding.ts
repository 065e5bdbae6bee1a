/** Decompresses bodies. Their senders may be hostile: a few bytes can decompress to gigabytes. */
import { concatBytes } from "../../../../shared/bytes.ts";

/** The rest of a longer output is left out, and the page says so. */
export const DECODED_MAX_BYTES = 4 * 1024 * 1024;
/** The rest of a longer `Content-Encoding` header is ignored. */
const HEADER_READ_CHARS = 200;
const CODINGS_MAX = 3;
/** Input is written in chunks of this size: an invalid chunk then does not lose the output of the chunks before it. */
const WRITE_CHUNK_BYTES = 16 * 1024;

/** `brotli` and `zstd` exist in some browsers only, and the types name neither. */
const FORMATS: Record<string, string[]> = {
  gzip: ["gzip"],
  "x-gzip": ["gzip"],
  // Some servers send the deflate format without the zlib header that HTTP requires.
  deflate: ["deflate", "deflate-raw"],
  br: ["brotli"],
  zstd: ["zstd"],
};

export interface DecodedContent {
  bytes: Uint8Array<ArrayBuffer>;
  /** The codings that were removed, in lower case. */
  codings: string[];
  /**
   * `too_long`: only the first `DECODED_MAX_BYTES` were decompressed. `incomplete`: the compressed bytes end too early or
   * are broken. `unsupported`: the bytes are still compressed with `coding`.
   */
  problem: null | { kind: "too_long" | "incomplete" | "unsupported"; coding: string };
}

/** @param contentEncoding the value of the header. */
export async function decodeContent(
  bytes: Uint8Array<ArrayBuffer>,
  contentEncoding: string | undefined,
): Promise<DecodedContent> {
  const names = (contentEncoding ?? "").slice(0, HEADER_READ_CHARS).toLowerCase().split(",");
  const codings = names
    .map((name) => name.trim())
    .filter((name) => !["", "identity"].includes(name));
  const content: DecodedContent = { bytes, codings: [], problem: null };
  if (bytes.length === 0) return content;
  for (const [index, coding] of codings.reverse().entries()) {
    const formats = Object.hasOwn(FORMATS, coding) ? FORMATS[coding]! : [];
    const output =
      index < CODINGS_MAX ? await tryFormats(content.bytes, formats) : ("unsupported" as const);
    if (output === "unsupported") {
      content.problem ??= { kind: "unsupported", coding };
      break;
    }
    content.bytes = output.bytes;
    content.codings.push(coding);
    if (output.end !== "complete") content.problem ??= { kind: output.end, coding };
  }
  return content;
}

interface Output {
  bytes: Uint8Array<ArrayBuffer>;
  end: "complete" | "too_long" | "incomplete";
}

/** The first format that yields any bytes. */
async function tryFormats(
  bytes: Uint8Array<ArrayBuffer>,
  formats: string[],
): Promise<Output | "unsupported"> {
  let last: Output | "unsupported" = "unsupported";
  for (const format of formats) {
    last = await decompress(bytes, format);
    if (last !== "unsupported" && last.bytes.length > 0) return last;
  }
  return last;
}

async function decompress(
  bytes: Uint8Array<ArrayBuffer>,
  format: string,
): Promise<Output | "unsupported"> {
  let stream: DecompressionStream;
  try {
    stream = new DecompressionStream(
      format as ConstructorParameters<typeof DecompressionStream>[0],
    );
  } catch {
    return "unsupported";
  }
  const writer = stream.writable.getWriter();
  const written = writeInParts(writer, bytes).catch(() => {});
  const reader = stream.readable.getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  let end: Output["end"] = "complete";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const chunk = value as Uint8Array;
      parts.push(chunk.subarray(0, DECODED_MAX_BYTES - size));
      size += chunk.length;
      if (size <= DECODED_MAX_BYTES) continue;
      end = "too_long";
      await reader.cancel();
      break;
    }
  } catch {
    end = "incomplete";
  }
  await written;
  return { bytes: concatBytes(parts), end };
}

async function writeInParts(
  writer: WritableStreamDefaultWriter<BufferSource>,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<void> {
  for (let at = 0; at < bytes.length; at += WRITE_CHUNK_BYTES) {
    await writer.write(bytes.subarray(at, at + WRITE_CHUNK_BYTES));
  }
  await writer.close();
}
