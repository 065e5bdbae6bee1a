/**
 * Replaces positions in the Worker's bundle, whose code is minified, with those in the source files, so that a stack trace in
 * the log can be read. On Cloudflare the platform does this with the same source maps.
 */
import { readFileSync } from "node:fs";
import { SourceMap, type SourceMapPayload } from "node:module";
import { join } from "node:path";
import { WORKER_DIR } from "../build/build.ts";
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";

/** A module of the bundle, a line and a column, both from 1. */
const POSITION = /([\w-]+\.js):(\d+):(\d+)/g;

/** Each takes some megabytes in memory. */
const MAPS_MAX = 10;
const maps = new BoundedMap<string, SourceMap | null>(MAPS_MAX);

export function toSourcePositions(logLine: string): string {
  return logLine.replace(POSITION, (position, module: string, line: string, column: string) => {
    const entry = findMap(module)?.findEntry(Number(line) - 1, Number(column) - 1);
    if (!entry || !("originalSource" in entry)) return position;
    const path = entry.originalSource.replace(/^(\.\.\/)+/, "");
    return `${path}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
  });
}

/** @returns null when the bundle has no such module. */
function findMap(module: string): SourceMap | null {
  let map = maps.get(module);
  if (map === undefined) {
    map = readMap(module);
    maps.set(module, map);
  }
  return map;
}

function readMap(module: string): SourceMap | null {
  try {
    const text = readFileSync(join(WORKER_DIR, `${module}.map`), "utf8");
    return new SourceMap(JSON.parse(text) as SourceMapPayload);
  } catch {
    return null;
  }
}
