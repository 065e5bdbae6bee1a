/** The parts of a multipart body (RFC 2046, RFC 7578). */

/** More parts are not shown. */
const PARTS_MAX = 200;
const PART_HEAD_MAX_BYTES = 16 * 1024;
/** RFC 2046 allows 70 characters. */
const BOUNDARY_MAX_CHARS = 200;

export interface MultipartPart {
  /** The name of a form's field; null when the part has none. */
  name: string | null;
  fileName: string | null;
  headers: Record<string, string>;
  bytes: Uint8Array<ArrayBuffer>;
  /** Whether the body ends before the part does. */
  isCut: boolean;
}

type MultipartBody =
  | { parts: MultipartPart[]; hasMore: boolean }
  | { problem: "no_boundary" | "no_parts" };

export function parseMultipart(
  bytes: Uint8Array<ArrayBuffer>,
  boundary: string | undefined,
): MultipartBody {
  if (!boundary || boundary.length > BOUNDARY_MAX_CHARS) return { problem: "no_boundary" };
  // One character for each byte, so that positions in the text are those of the bytes.
  const text = new TextDecoder("x-user-defined").decode(bytes);
  const delimiter = `\r\n--${boundary}`;
  const parts: MultipartPart[] = [];
  let at = text.startsWith(`--${boundary}`) ? boundary.length + 2 : findEnd(text, delimiter, 0);
  if (at < 0) return { problem: "no_parts" };
  while (parts.length < PARTS_MAX) {
    if (text.startsWith("--", at)) return { parts, hasMore: false };
    const start = findEnd(text, "\r\n", at);
    if (start < 0) return { parts, hasMore: false };
    // The delimiter's line break may directly follow that of the head.
    const found = text.indexOf(delimiter, start - 2);
    const end = found < 0 ? text.length : found;
    parts.push(readPart(bytes, text, { start, end, isCut: found < 0 }));
    if (found < 0) return { parts, hasMore: false };
    at = found + delimiter.length;
  }
  return { parts, hasMore: true };
}

/** @returns the position after the next occurrence of the part; -1 when there is none. */
function findEnd(text: string, part: string, from: number): number {
  const at = text.indexOf(part, from);
  return at < 0 ? -1 : at + part.length;
}

/** @param part positions in the bytes: after the delimiter before the part, and before the one after it. */
function readPart(
  bytes: Uint8Array<ArrayBuffer>,
  text: string,
  { start, end, isCut }: { start: number; end: number; isCut: boolean },
): MultipartPart {
  const hasNoHead = text.startsWith("\r\n", start);
  const separator = hasNoHead ? start : text.indexOf("\r\n\r\n", start);
  const hasHead = separator >= 0 && separator < end && separator - start <= PART_HEAD_MAX_BYTES;
  const bodyStart = hasNoHead ? start + 2 : hasHead ? separator + 4 : start;
  const headers = hasHead ? readHead(bytes.subarray(start, separator)) : {};
  const disposition = headers["content-disposition"] ?? "";
  return {
    name: readParameter(disposition, "name"),
    fileName: readParameter(disposition, "filename"),
    headers,
    bytes: bytes.slice(Math.min(bodyStart, end), end),
    isCut,
  };
}

function readHead(bytes: Uint8Array): Record<string, string> {
  const headers = new Map<string, string>();
  for (const line of new TextDecoder().decode(bytes).split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0)
      headers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
  }
  return Object.fromEntries(headers);
}

/** Browsers write `%22` for a quotation mark; other programs write a backslash before it. */
function readParameter(disposition: string, name: string): string | null {
  const match = new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;]*))`, "i").exec(
    disposition,
  );
  if (match === null) return null;
  const [, quoted, plain = ""] = match;
  return quoted?.replaceAll(/\\(["\\])/g, "$1") ?? plain;
}
