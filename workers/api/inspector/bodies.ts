/** Decodes captured bodies: bytes as they were sent, compressed or not, complete or cut. */
import { BoundedBuffer } from "../../../shared/bounds/bounded-buffer.ts";

/** A body that would decompress to more than this is left as it was sent. */
const DECOMPRESSED_MAX_BYTES = 2 * 1024 * 1024;

/** @returns null when the bytes are not text: not valid UTF-8, or with a NUL character. */
export function decodeText(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

type Format = ConstructorParameters<typeof DecompressionStream>[0];

/** The codings that the platform can decompress. */
const FORMATS: Record<string, Format> = {
  gzip: "gzip",
  "x-gzip": "gzip",
  deflate: "deflate",
};
const MAX_CODINGS = 2;

/**
 * @param contentEncoding the value of the header.
 * @param onChunk gets the sizes of what is decompressed, which takes time also when there is no result.
 * @returns null when the body can't be decompressed: an unknown coding, a cut body, or a result that is too large.
 */
export async function decompress(
  bytes: Uint8Array<ArrayBuffer>,
  contentEncoding: string | undefined,
  onChunk: (bytes: number) => void = () => {},
): Promise<Uint8Array<ArrayBuffer> | null> {
  const codings = (contentEncoding ?? "")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim())
    .filter((name) => !["", "identity"].includes(name));
  if (codings.length > MAX_CODINGS) return null;
  let body: Uint8Array<ArrayBuffer> | null = bytes;
  for (const name of codings.reverse()) {
    const format = Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined;
    body = format && body ? await inflate(body, format, onChunk) : null;
  }
  return body;
}

async function inflate(
  bytes: Uint8Array<ArrayBuffer>,
  format: Format,
  onChunk: (bytes: number) => void,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const body = new BoundedBuffer(DECOMPRESSED_MAX_BYTES);
  try {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format));
    for await (const chunk of stream) {
      onChunk(chunk.byteLength);
      // Leaving the loop cancels the stream, so a few bytes can't decompress to gigabytes.
      if (!body.append(chunk)) return null;
    }
  } catch {
    return null;
  }
  return body.bytes;
}
