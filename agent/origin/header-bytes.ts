/**
 * Converts header lines between the wire, where they are text, and HTTP/1.1, where they are bytes. Node.js writes and reads
 * one byte for each character of a string (Latin-1), so the bytes of UTF-8 text are converted to such strings and back.
 */
import { headerPairs } from "../../shared/raw-headers.ts";

/** Headers of one connection only (RFC 9110 §7.6.1). `content-length` belongs to the message and is forwarded. */
const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** A string with one character for each byte of the text's UTF-8; ASCII stays the same. */
export function utf8ToLatin1(text: string): string {
  return isAscii(text) ? text : Buffer.from(text, "utf8").toString("latin1");
}

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Decodes a value as UTF-8 if it is valid UTF-8, otherwise as Latin-1, in which every byte is valid. */
export function decodeHeaderValue(bytes: Buffer): string {
  const latin1 = bytes.toString("latin1");
  if (isAscii(latin1)) return latin1;
  try {
    return strictUtf8.decode(bytes);
  } catch {
    return latin1;
  }
}

/** The response headers that are forwarded to the visitor: names and values in turn, in their order. */
export function toResponsePairs(rawHeaders: (Buffer | string)[]): string[] {
  const pairs: string[] = [];
  let dropped = HOP_BY_HOP;
  for (const [name, value] of headerPairs(rawHeaders)) {
    if (decode(name).toLowerCase() === "connection")
      dropped = addConnectionOptions(dropped, decode(value));
  }
  for (const [rawName, value] of headerPairs(rawHeaders)) {
    const name = decode(rawName);
    if (!dropped.has(name.toLowerCase())) pairs.push(name, decode(value));
  }
  return pairs;
}

/** The connection options of a `Connection` header name further headers of this connection only (RFC 9110 §7.6.1). */
function addConnectionOptions(dropped: Set<string>, connection: string): Set<string> {
  const lower = connection.toLowerCase();
  if (lower === "keep-alive" || lower === "close") return dropped;
  return new Set([...dropped, ...lower.split(",").map((name) => name.trim())]);
}

function decode(value: Buffer | string): string {
  return typeof value === "string"
    ? decodeHeaderValue(Buffer.from(value, "latin1"))
    : decodeHeaderValue(value);
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) if (text.charCodeAt(i) > 0x7f) return false;
  return true;
}
