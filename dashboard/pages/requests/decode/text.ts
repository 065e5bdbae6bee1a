/** Bytes as text, in the encoding that their sender declared. */

interface DecodedText {
  text: string;
  /** The encoding that was used: the declared one, or UTF-8. */
  encoding: string;
  /** Declared by the sender, and unknown to the browser. */
  unknownCharset: string | null;
  /** Whether some bytes are not valid in the encoding. */
  hasInvalidBytes: boolean;
}

const CHARSET_MAX_CHARS = 40;

/** @param charset as the sender declared it. A byte order mark precedes it. */
export function decodeText(bytes: Uint8Array, charset: string | undefined): DecodedText {
  const declared = (charset ?? "").slice(0, CHARSET_MAX_CHARS).trim();
  const label = findByteOrderMark(bytes) ?? (declared === "" ? "utf-8" : declared);
  let decoder: TextDecoder;
  let unknownCharset: string | null = null;
  try {
    decoder = new TextDecoder(label);
  } catch {
    decoder = new TextDecoder();
    unknownCharset = declared;
  }
  const text = decoder.decode(bytes);
  return {
    text,
    encoding: decoder.encoding,
    unknownCharset,
    hasInvalidBytes: text.includes("\ufffd"),
  };
}

function findByteOrderMark(bytes: Uint8Array): string | null {
  const [first, second, third] = bytes;
  if (first === 0xef && second === 0xbb && third === 0xbf) return "utf-8";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  if (first === 0xff && second === 0xfe) return "utf-16le";
  return null;
}

const SAMPLE_BYTES = 8 * 1024;
/** A text has few control characters, apart from tabs and line breaks. */
const CONTROL_SHARE_MAX = 0.02;

/** Whether bytes of an unknown type are text in UTF-8. */
export function looksLikeText(bytes: Uint8Array): boolean {
  const sample = bytes.subarray(0, SAMPLE_BYTES);
  // The sample may end within a character.
  const text = new TextDecoder().decode(sample, { stream: true });
  const bad = text.match(/[\0-\x08\x0e-\x1a\x1c-\x1f\ufffd]/g)?.length ?? 0;
  return !text.includes("\0") && bad <= text.length * CONTROL_SHARE_MAX;
}
