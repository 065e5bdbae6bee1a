/**
 * Header lines between the wire, where they are text, and HTTP/1.1, where they are bytes. Node writes and
 * reads a byte for each of a string's characters (Latin-1), so other text is put into that form and back.
 */
import { headerPairs } from "../../shared/header-lines.ts";

/** The hop's own lines (RFC 9110 §7.6.1). The length stays: it is the body's. */
const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Text as the bytes of its UTF-8, one character each; ASCII is the same either way. */
export function utf8ToLatin1(text: string): string {
  return isAscii(text) ? text : Buffer.from(text, "utf8").toString("latin1");
}

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A value's bytes as text: UTF-8 where they are that, else Latin-1, which every byte is. */
export function decodeHeaderValue(bytes: Buffer): string {
  const latin1 = bytes.toString("latin1");
  if (isAscii(latin1)) return latin1;
  try {
    return strictUtf8.decode(bytes);
  } catch {
    return latin1;
  }
}

/** What of an answer's head goes to the visitor: names and values in turn, in their order. */
export function toResponsePairs(rawHeaders: (Buffer | string)[]): string[] {
  const pairs: string[] = [];
  let dropped = HOP_BY_HOP;
  for (const [name, value] of headerPairs(rawHeaders)) {
    if (decode(name).toLowerCase() === "connection") dropped = addNamed(dropped, decode(value));
  }
  for (const [rawName, value] of headerPairs(rawHeaders)) {
    const name = decode(rawName);
    if (!dropped.has(name.toLowerCase())) pairs.push(name, decode(value));
  }
  return pairs;
}

function addNamed(dropped: Set<string>, connection: string): Set<string> {
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
