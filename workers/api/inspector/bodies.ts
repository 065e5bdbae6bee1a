/** Bodies as they were kept: bytes as they were sent, packed or not, whole or cut. */
import { concatBytes } from "../../../shared/bytes.ts";

/** A packed body unpacks to no more than this; one that would is left as it was sent. */
const DECOMPRESSED_MAX_BYTES = 2 * 1024 * 1024;

/** @returns null when these bytes are no text: not in UTF-8, or with NUL in them. */
export function decodeText(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

type Format = ConstructorParameters<typeof DecompressionStream>[0];

/** What this platform unpacks; others stay packed. */
const FORMATS: Record<string, Format> = {
  gzip: "gzip",
  "x-gzip": "gzip",
  deflate: "deflate",
};
const MAX_CODINGS = 2;

/**
 * @param coding the value of Content-Encoding.
 * @returns null when it can't be unpacked: an unknown coding, a body that was cut, or one that grows too large.
 */
export async function decompress(
  bytes: Uint8Array<ArrayBuffer>,
  coding: string | undefined,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const codings = (coding ?? "").toLowerCase().split(",");
  const named = codings
    .map((name) => name.trim())
    .filter((name) => !["", "identity"].includes(name));
  if (named.length > MAX_CODINGS) return null;
  let body: Uint8Array<ArrayBuffer> | null = bytes;
  for (const name of named.reverse()) {
    const format = Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined;
    body = format && body ? await inflate(body, format) : null;
  }
  return body;
}

async function inflate(
  bytes: Uint8Array<ArrayBuffer>,
  format: Format,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format));
    for await (const chunk of stream) {
      length += chunk.length;
      // Leaving the loop cancels the stream: what a few bytes could unpack to is never made.
      if (length > DECOMPRESSED_MAX_BYTES) return null;
      chunks.push(chunk);
    }
  } catch {
    return null;
  }
  return concatBytes(...chunks);
}
