/**
 * Whether a path has a denied prefix. Servers interpret the same path in different ways, and a visitor chooses
 * the spelling: all interpretations in common use are tried, and one match denies the path.
 */
import { Prefixes } from "./prefixes.ts";
import { decodePath, foldCase } from "./path-text.ts";
import { Readings } from "./readings.ts";

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
 * @param path of a request target, as the visitor sent it.
 */
export function checkPath(denied: readonly string[], path: string): PathVerdict {
  return new CheckedPath(path).check(denied);
}

/** A path that is compared with several lists. It is read once for all of them. */
export class CheckedPath {
  readonly #path: string;
  readonly #isAmbiguous: boolean;
  #readings: Readings[] | undefined;

  constructor(path: string) {
    this.#path = path;
    this.#isAmbiguous = isAmbiguous(path);
  }

  check(denied: readonly string[]): PathVerdict {
    const prefixes = compile(denied);
    if (!this.#isAmbiguous) return beginsWithAny(prefixes, this.#path) ? "denied" : "allowed";
    if (this.#path.length > AMBIGUOUS_PATH_MAX_CHARS) return "too_long";
    this.#readings ??= listTargetPaths(this.#path).map((path) => new Readings(path));
    const isDenied = this.#readings.some((readings) => readings.isDenied(prefixes));
    return isDenied ? "denied" : "allowed";
  }
}

/**
 * A host after two slashes, as in a URL without a scheme, up to the next slash: in RFC 3986 §4.2, where `\` counts as a slash
 * (`new URL(request.url, base)`), and for servers that decode the path first.
 */
const LEADING_HOSTS = [
  /^\/\/[^/]*/,
  /^[/\\]{2,}[^/\\]*/,
  /^(?:[/\\]|%2f|%5c){2,}(?:(?!%2f|%5c)[^/\\])*/i,
];

/** The path, and what remains of it for servers that take its beginning for a host. */
function listTargetPaths(path: string): string[] {
  const withoutHosts = LEADING_HOSTS.map((host) => path.replace(host, ""));
  return [...new Set([path, ...withoutHosts])].filter((text) => text !== "");
}

/** Whether it has several interpretations, which take a hundred times as long to compare as one. */
export function isAmbiguous(path: string): boolean {
  return AMBIGUOUS.test(path);
}

function compile(denied: readonly string[]): Prefixes {
  let prefixes = compiled.get(denied);
  if (!prefixes) {
    prefixes = new Prefixes(denied.flatMap((prefix) => [foldCase(prefix), decodePath(prefix)]));
    compiled.set(denied, prefixes);
  }
  return prefixes;
}

/** A path of bounded length with the same verdict: no prefix is as long as what is kept. */
export function shortenPath(path: string): string {
  if (path.length <= AMBIGUOUS_PATH_MAX_CHARS) return path;
  const beginning = path.slice(0, AMBIGUOUS_PATH_MAX_CHARS);
  return isAmbiguous(path) ? `${beginning}%` : beginning;
}

function beginsWithAny(prefixes: Prefixes, path: string): boolean {
  const match = prefixes.match();
  for (let at = 0; at < path.length && !match.isDecided; at++) match.take(foldCase(path[at]!));
  return match.isComplete;
}
