/**
 * Whether a path lies below one that is denied. Servers read the same path in different ways, and a visitor
 * picks the spelling: every way to read it that is in use is tried, and one that matches is enough.
 */

/** A path without any of these is read in one way only. */
const AMBIGUOUS = /[%\\;]|\/\/|\/\./;

/** Case counts: what a server that ignores it answers to has to be denied in each spelling. */
export function isDenied(prefixes: string[], path: string): boolean {
  const denied = [...new Set(prefixes.flatMap((prefix) => [prefix, decode(prefix)]))];
  const isBelow = (reading: string) => denied.some((prefix) => reading.startsWith(prefix));
  return isBelow(path) || (AMBIGUOUS.test(path) && readingsOf(path).some(isBelow));
}

/** Stands for an encoded slash that is no border between segments while they are resolved. */
const INNER_SLASH = "\uE000";
const hideSlashes = (path: string) => path.replace(/%2f/gi, INNER_SLASH);
const showSlashes = (path: string) => path.replaceAll(INNER_SLASH, "/");
const asItIs = (path: string) => path;

/** What is decoded before the segments are resolved, and what afterwards: everything once. */
const DECODINGS: [before: (path: string) => string, after: (path: string) => string][] = [
  [asItIs, asItIs],
  [asItIs, decode],
  [(path) => decode(hideSlashes(path)), showSlashes],
  [decode, asItIs],
];

/**
 * Servers also differ in whether `;` and `\` mean anything to them and whether empty segments count, and no
 * order of all this covers another: `/a/%2e%2e/../b` is `/b` to one that decodes first and `/a/b` to one
 * that resolves first.
 */
function readingsOf(path: string): string[] {
  const readings = new Set<string>();
  for (const [before, after] of DECODINGS) {
    const decoded = before(path);
    for (const segmented of new Set([decoded, decoded.replaceAll("\\", "/")])) {
      for (const plain of new Set([segmented, segmented.replace(/;[^/]*/g, "")])) {
        for (const resolution of resolutionsOf(plain)) readings.add(after(resolution));
      }
    }
  }
  return [...readings];
}

function resolutionsOf(path: string): Set<string> {
  const merged = mergeSlashes(path);
  const resolved = resolveDots(path);
  return new Set([path, merged, resolved, mergeSlashes(resolved), resolveDots(merged)]);
}

function mergeSlashes(path: string): string {
  return path.replace(/\/{2,}/g, "/");
}

/** `.` and `..` as in RFC 3986 §5.2.4; empty segments are segments. */
function resolveDots(path: string): string {
  const kept: string[] = [];
  const segments = path.split("/");
  for (const [index, segment] of segments.entries()) {
    const isDots = segment === "." || segment === "..";
    // The first is what stands before the leading slash.
    if (segment === ".." && kept.length > 1) kept.pop();
    if (!isDots) kept.push(segment);
    else if (index === segments.length - 1) kept.push("");
  }
  return kept.join("/");
}

const utf8 = new TextDecoder();

function decode(path: string): string {
  return path.replace(/%[0-7][0-9a-f]|(?:%[89a-f][0-9a-f])+/gi, (run) =>
    run.length === 3
      ? String.fromCharCode(parseInt(run.slice(1), 16))
      : utf8.decode(Uint8Array.from(run.slice(1).split("%"), (hex) => parseInt(hex, 16))),
  );
}
