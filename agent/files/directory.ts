/** Finds the file of a request's path inside the directory that a tunnel shares, and nothing outside of it. */
import type { Dirent } from "node:fs";
import { opendir, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, relative, sep } from "node:path";

export const INDEX = "index.html";

/** A directory's page names at most this many entries. */
export const LISTED_ENTRIES_MAX = 1_000;
/** It is made of at most this many entries: the others may be hidden, or links to nothing. */
export const EXAMINED_ENTRIES_MAX = 5_000;

export type Entry = { kind: "file"; path: string } | { kind: "directory"; path: string };

/**
 * The names of a request's path, decoded.
 * @returns null for a path that leads elsewhere or to a hidden file: with `..`, a backslash, NUL, or a name that begins with a
 * dot. On Windows a colon would name a drive or a stream of a file.
 */
export function parsePath(path: string, isWindows = process.platform === "win32"): string[] | null {
  const names: string[] = [];
  for (const part of path.split("/")) {
    const name = decode(part);
    if (name === null || !isServable(name, isWindows)) return null;
    if (name !== "") names.push(name);
  }
  return names;
}

/**
 * @param root the directory's real path. @param names from `parsePath`.
 * @returns the entry with its real path; null when there is none, when a symbolic link leads out of the directory or to
 * a hidden file, and for devices and pipes.
 */
export async function findEntry(root: string, names: string[]): Promise<Entry | null> {
  try {
    const path = await realpath(join(root, ...names));
    if (!isInside(root, path)) return null;
    const found = await stat(path);
    if (found.isDirectory()) return { kind: "directory", path };
    return found.isFile() ? { kind: "file", path } : null;
  } catch {
    return null;
  }
}

export interface Listing {
  /** In alphabetical order; those of directories end with a slash. */
  names: string[];
  /** Whether the directory has more of them. */
  isCut: boolean;
}

/**
 * The visible entries of a directory.
 * @param directory its real path. @param isWanted asked for each entry: false ends the search.
 */
export async function listEntries(
  root: string,
  directory: string,
  isWanted: () => boolean,
): Promise<Listing> {
  const names: string[] = [];
  let examined = 0;
  let isCut = false;
  for await (const entry of await opendir(directory)) {
    if (!isWanted()) break;
    isCut = examined === EXAMINED_ENTRIES_MAX;
    if (isCut) break;
    examined += 1;
    const kind = isServable(entry.name) ? await findKind(root, directory, entry) : null;
    if (kind === null) continue;
    isCut = names.length === LISTED_ENTRIES_MAX;
    if (isCut) break;
    names.push(kind === "directory" ? `${entry.name}/` : entry.name);
  }
  return { names: names.sort((a, b) => a.localeCompare(b)), isCut };
}

/** Only links have to be followed, and entries whose type the file system does not report. */
async function findKind(
  root: string,
  directory: string,
  entry: Dirent,
): Promise<Entry["kind"] | null> {
  if (entry.isDirectory()) return "directory";
  if (entry.isFile()) return "file";
  const path = relative(root, join(directory, entry.name));
  return (await findEntry(root, path.split(sep)))?.kind ?? null;
}

function isInside(root: string, path: string): boolean {
  const inner = relative(root, path);
  return !isAbsolute(inner) && inner.split(sep).every(isVisible);
}

function isServable(name: string, isWindows = process.platform === "win32"): boolean {
  if (/[/\\\0]/.test(name) || (isWindows && name.includes(":"))) return false;
  return isVisible(name) && name.isWellFormed();
}

/** Also false for `..`. */
function isVisible(name: string): boolean {
  return !name.startsWith(".");
}

function decode(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}
