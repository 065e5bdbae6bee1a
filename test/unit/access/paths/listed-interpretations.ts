/**
 * What `checkPath` decides, the obvious way: every interpretation of a path is written out, in some eighty passes over it.
 */

/** Case-sensitive. */
export function isDeniedByListing(prefixes: string[], path: string): boolean {
  const denied = [...new Set(prefixes.flatMap((prefix) => [prefix, decode(prefix)]))];
  const isBelow = (interpretation: string) =>
    denied.some((prefix) => interpretation.startsWith(prefix));
  const hosts = [
    /^\/\/[^/]*/,
    /^[/\\]{2,}[^/\\]*/,
    /^(?:[/\\]|%2f|%5c){2,}(?:(?!%2f|%5c)[^/\\])*/i,
  ];
  const withoutHost = hosts.map((host) => path.replace(host, ""));
  return isBelow(path) || [path, ...withoutHost].flatMap(listInterpretations).some(isBelow);
}

/** Stands for an encoded slash, which does not separate segments, while dots are resolved. */
const INNER_SLASH = "\uE000";
const restoreSlashes = (path: string) => path.replaceAll(INNER_SLASH, "/");
const identity = (path: string) => path;

/**
 * Servers differ in what they decode before they split segments, in whether `;` and `\` are special, and in
 * whether empty segments count. No order of these steps covers the others: `/a/%2e%2e/../b` is `/b` to a server
 * that decodes first and `/a/b` to one that resolves first.
 */
function listInterpretations(path: string): string[] {
  const decodedButSlashes = decode(path.replace(/%2f/gi, INNER_SLASH));
  // The text to resolve, and the step after it; together they decode everything once.
  const spellings: [string, (resolution: string) => string][] = [
    [path, identity],
    [path, decode],
    [decodedButSlashes, restoreSlashes],
    [restoreSlashes(decodedButSlashes), identity],
  ];
  const interpretations = new Set<string>();
  for (const [spelling, finish] of spellings) {
    for (const segmented of new Set([spelling, spelling.replaceAll("\\", "/")])) {
      for (const plain of new Set([segmented, segmented.replace(/;[^/]*/g, "")])) {
        for (const resolution of listResolutions(plain)) {
          interpretations.add(finish(resolution));
        }
      }
    }
  }
  return [...interpretations];
}

function listResolutions(path: string): Set<string> {
  const merged = mergeSlashes(path);
  const resolved = resolveDots(path);
  return new Set([path, merged, resolved, mergeSlashes(resolved), resolveDots(merged)]);
}

function mergeSlashes(path: string): string {
  return path.replace(/\/{2,}/g, "/");
}

/** `.` and `..` as in RFC 3986 §5.2.4; empty segments count as segments. */
function resolveDots(path: string): string {
  const resolved: string[] = [];
  const segments = path.split("/");
  for (const [index, segment] of segments.entries()) {
    const isDots = segment === "." || segment === "..";
    // The first segment is the empty one before the leading slash.
    if (segment === ".." && resolved.length > 1) resolved.pop();
    if (!isDots) resolved.push(segment);
    else if (index === segments.length - 1) resolved.push("");
  }
  return resolved.join("/");
}

const utf8 = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

function decode(path: string): string {
  return path.replace(/%[0-7][0-9a-f]|(?:%[89a-f][0-9a-f])+/gi, (run) =>
    run.length === 3
      ? String.fromCharCode(parseInt(run.slice(1), 16))
      : utf8.decode(Uint8Array.from(run.slice(1).split("%"), (hex) => parseInt(hex, 16))),
  );
}
