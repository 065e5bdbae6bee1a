/** Compares two responses to the same request, to show what a change of the local server has changed. */
import type { CaptureDetail } from "../../../protocol/schemas/inspector/captures.ts";
import type { Comparison, Difference } from "../../../protocol/schemas/inspector/replays.ts";
import { fromBase64 } from "../../../shared/bytes.ts";
import { decodeText, decompress } from "./bodies.ts";

/** How many differences between two bodies are listed. */
export const COMPARISON_MAX_DIFFERENCES = 100;
/** Values that are nested more deeply are not compared. */
const COMPARISON_MAX_DEPTH = 64;
/** Values below a longer JSON pointer are not compared. */
const COMPARISON_PATH_MAX_CHARS = 2_000;
export const COMPARISON_VALUE_MAX_CHARS = 200;

/** Headers that change with time even if the response is the same. */
const VOLATILE_HEADERS = new Set(["date", "age"]);

export async function compareResponses(
  original: CaptureDetail,
  replayed: CaptureDetail,
): Promise<Comparison> {
  const status = {
    original: original.status,
    replayed: replayed.status,
    same: original.status === replayed.status,
  };
  const headers = compareHeaders(original, replayed);
  const body = await compareBodies(original, replayed);
  const differing = [headers.added, headers.removed, headers.changed].flatMap(Object.keys);
  const sameHeaders = differing.every((name) => VOLATILE_HEADERS.has(name));
  return {
    same: status.same && sameHeaders && body.same,
    status,
    headers,
    body,
    latency_ms: { original: original.latency_ms, replayed: replayed.latency_ms },
  };
}

function compareHeaders(before: CaptureDetail, after: CaptureDetail): Comparison["headers"] {
  if (isHeadCut(before, after)) return { cut: true, added: {}, removed: {}, changed: {} };
  const original = new Map(Object.entries(before.response_headers));
  const replayed = new Map(Object.entries(after.response_headers));
  const pickMissing = (from: Map<string, string>, others: Map<string, string>) =>
    Object.fromEntries([...from].filter(([name]) => !others.has(name)));
  const changed = [...original].filter(
    ([name, value]) => replayed.has(name) && replayed.get(name) !== value,
  );
  return {
    cut: false,
    added: pickMissing(replayed, original),
    removed: pickMissing(original, replayed),
    changed: Object.fromEntries(
      changed.map(([name, value]) => [name, { original: value, replayed: replayed.get(name)! }]),
    ),
  };
}

function isHeadCut(...both: CaptureDetail[]): boolean {
  return both.some(({ truncated }) => truncated.response_head);
}

async function compareBodies(
  original: CaptureDetail,
  replayed: CaptureDetail,
): Promise<Comparison["body"]> {
  const cut = original.truncated.response || replayed.truncated.response;
  const size = { original: original.response_size, replayed: replayed.response_size };
  // Without its headers, how one of them is compressed is unknown.
  const read = isHeadCut(original, replayed) ? readSentBody : readPlainBody;
  const [before, after] = await Promise.all([read(original), read(replayed)]);
  const comparedBytes = cut ? Math.min(before.length, after.length) : Infinity;
  const first = findFirstDifference(
    before.subarray(0, comparedBytes),
    after.subarray(0, comparedBytes),
  );
  const isSameSize = !cut || size.original === size.replayed;
  const found = cut ? null : findJsonDifferences(before, after);
  return {
    same: first === null && isSameSize,
    cut,
    size,
    first_difference: first,
    differences: found?.differences ?? null,
    more_differences: found?.more ?? false,
  };
}

/** A body that can't be decompressed is compared as it was sent. */
async function readPlainBody(response: CaptureDetail) {
  const sent = readSentBody(response);
  return (await decompress(sent, response.response_headers["content-encoding"])) ?? sent;
}

function readSentBody({ response_body: body }: CaptureDetail) {
  return fromBase64(body) ?? new Uint8Array();
}

function findFirstDifference(original: Uint8Array, replayed: Uint8Array): number | null {
  const common = Math.min(original.length, replayed.length);
  for (let at = 0; at < common; at++) if (original[at] !== replayed[at]) return at;
  return original.length === replayed.length ? null : common;
}

function findJsonDifferences(original: Uint8Array, replayed: Uint8Array) {
  const [before, after] = [parseJsonBody(original), parseJsonBody(replayed)];
  return before && after ? compareValues(before.value, after.value) : null;
}

function parseJsonBody(bytes: Uint8Array): { value: unknown } | null {
  try {
    return { value: JSON.parse(decodeText(bytes) ?? "") };
  } catch {
    return null;
  }
}

interface ValuePair {
  path: string;
  depth: number;
  original: unknown;
  replayed: unknown;
}

/** Ignores the order of an object's fields. Not recursive, because visitors choose how deep bodies are nested. */
function compareValues(original: unknown, replayed: unknown) {
  const differences: Difference[] = [];
  let more = false;
  const pending: ValuePair[] = [{ path: "", depth: 0, original, replayed }];
  for (let pair = pending.pop(); pair; pair = pending.pop()) {
    const { path, depth } = pair;
    const [before, after] = [toFields(pair.original), toFields(pair.replayed)];
    const isSameKind =
      before && after && Array.isArray(pair.original) === Array.isArray(pair.replayed);
    if (!isSameKind) {
      if (pair.original === pair.replayed) continue;
      if (differences.length === COMPARISON_MAX_DIFFERENCES) return { differences, more: true };
      differences.push({
        path,
        original: formatValue(pair.original),
        replayed: formatValue(pair.replayed),
      });
      continue;
    }
    const names = [...new Set([...before.keys(), ...after.keys()])].reverse();
    const isTooDeep = depth === COMPARISON_MAX_DEPTH || path.length > COMPARISON_PATH_MAX_CHARS;
    if (isTooDeep) {
      more ||= names.length > 0;
      continue;
    }
    for (const name of names) {
      const segment = name.replaceAll("~", "~0").replaceAll("/", "~1");
      pending.push({
        path: `${path}/${segment}`,
        depth: depth + 1,
        original: before.get(name),
        replayed: after.get(name),
      });
    }
  }
  return { differences, more };
}

function toFields(value: unknown): Map<string, unknown> | null {
  return typeof value === "object" && value !== null ? new Map(Object.entries(value)) : null;
}

/** @param value undefined: the field is missing. */
function formatValue(value: unknown): string | null {
  if (value === undefined) return null;
  if (Array.isArray(value)) return value.length === 0 ? "[]" : `[… ${value.length}]`;
  if (typeof value === "object" && value !== null) {
    const { length } = Object.keys(value);
    return length === 0 ? "{}" : `{… ${length}}`;
  }
  const text = JSON.stringify(value);
  if (text.length <= COMPARISON_VALUE_MAX_CHARS) return text;
  return `${text.slice(0, COMPARISON_VALUE_MAX_CHARS).toWellFormed()}…`;
}
