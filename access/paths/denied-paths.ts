/**
 * Whether a path has a denied prefix. Servers interpret the same path in different ways, and a visitor chooses
 * the spelling: all interpretations in common use are tried, and one match denies the path.
 */
import { Prefixes } from "./prefixes.ts";
import { decodePath, foldCase } from "./path-text.ts";
import { hasDeniedReading } from "./readings.ts";

/** A path without any of these has only one interpretation. */
const AMBIGUOUS = /[%\\;]|\/\/|\/\./;

/** A longer path is refused if it is ambiguous. Few servers accept one, and reading it takes time. */
export const AMBIGUOUS_PATH_MAX_CHARS = 4_096;

export type PathVerdict = "allowed" | "denied" | "too_long";

/** Keyed by the list itself: settings are replaced as a whole, and an unreferenced list is collected. */
const compiled = new WeakMap<readonly string[], Prefixes>();

/**
 * The case of letters is ignored, since many servers and file systems ignore it.
 *
 * @param path of a request target, as the visitor sent it. It is read once, whatever its spelling.
 */
export function checkPath(denied: readonly string[], path: string): PathVerdict {
  let prefixes = compiled.get(denied);
  if (!prefixes) {
    prefixes = new Prefixes(denied.flatMap((prefix) => [foldCase(prefix), decodePath(prefix)]));
    compiled.set(denied, prefixes);
  }
  if (!AMBIGUOUS.test(path)) return beginsWithAny(prefixes, path) ? "denied" : "allowed";
  if (path.length > AMBIGUOUS_PATH_MAX_CHARS) return "too_long";
  return hasDeniedReading(prefixes, path) ? "denied" : "allowed";
}

/** A path of bounded length with the same verdict: no prefix is as long as what is kept. */
export function shortenPath(path: string): string {
  if (path.length <= AMBIGUOUS_PATH_MAX_CHARS) return path;
  const beginning = path.slice(0, AMBIGUOUS_PATH_MAX_CHARS);
  return AMBIGUOUS.test(path) ? `${beginning}%` : beginning;
}

function beginsWithAny(prefixes: Prefixes, path: string): boolean {
  const match = prefixes.match();
  for (let at = 0; at < path.length && !match.isDecided; at++) match.take(foldCase(path[at]!));
  return match.isComplete;
}
