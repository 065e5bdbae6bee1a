/**
 * Whether a path lies below one that is denied. Servers read the same path in different ways, and a visitor
 * picks the spelling: every way to read it that is in use is tried, and one that matches is enough.
 */

/** A path without any of these is read in one way only. */
const AMBIGUOUS = /[%\\;]|\/\/|\/\./;

/** Case counts: what a server that ignores it answers to has to be denied in each spelling. */
export function isDeniedPath(prefixes: string[], path: string): boolean {
  const denied = [...new Set(prefixes.flatMap((prefix) => [prefix, decode(prefix)]))];
  const isBelow = (reading: string) => denied.some((prefix) => reading.startsWith(prefix));
  if (isBelow(path)) return true;
  const longest = Math.max(0, ...denied.map((prefix) => prefix.length));
  return AMBIGUOUS.test(path) && listReadings(path, ENCODED_MAX_CHARS * longest).some(isBelow);
}

/** What one character takes when it is encoded: three bytes of three. */
const ENCODED_MAX_CHARS = 9;

/** Stands for an encoded slash that is no border between segments while they are resolved. */
const INNER_SLASH = "\uE000";
const showSlashes = (path: string) => path.replaceAll(INNER_SLASH, "/");
const asItIs = (path: string) => path;

/**
 * Servers differ in what they decode before they look for segments, in whether `;` and `\` mean anything to
 * them, and in whether empty segments count. No order of all this covers another: `/a/%2e%2e/../b` is `/b`
 * to one that decodes first and `/a/b` to one that resolves first.
 *
 * @param chars of each reading that are enough to tell.
 */
function listReadings(path: string, chars: number): string[] {
  const decodedButSlashes = decode(path.replace(/%2f/gi, INNER_SLASH));
  // What is resolved, and what is decoded of it afterwards: everything once.
  const spellings: [string, (resolution: string) => string][] = [
    [path, asItIs],
    [path, decode],
    [decodedButSlashes, showSlashes],
    [showSlashes(decodedButSlashes), asItIs],
  ];
  const readings = new Set<string>();
  for (const [spelling, finish] of spellings) {
    for (const segmented of new Set([spelling, spelling.replaceAll("\\", "/")])) {
      for (const plain of new Set([segmented, segmented.replace(/;[^/]*/g, "")])) {
        for (const resolution of listResolutions(plain)) {
          readings.add(finish(resolution.slice(0, chars)));
        }
      }
    }
  }
  return [...readings];
}

function listResolutions(path: string): Set<string> {
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
