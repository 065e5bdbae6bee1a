/** Merges what several objects of one tunnel have captured. */
import type { ErrorCode } from "../../../protocol/errors.ts";
import type { StatusClass } from "../../../protocol/schemas/metrics.ts";
import {
  BREAKDOWN_MAX_PATHS,
  byRequests,
  type CaptureBreakdown,
  type PathCounts,
} from "../captures/reading/breakdown.ts";

/** Newest first. Ids start with the time, so the order is the same for all objects and pages. */
export function mergeNewest<Item extends { id: string }>(lists: Item[][], limit: number): Item[] {
  const merged = lists.flat().sort((one, other) => (one.id < other.id ? 1 : -1));
  return merged.slice(0, limit);
}

/**
 * Puts what others have into the gaps of a list, in the order of the gaps.
 *
 * @param others can have fewer items than there are gaps. The list then ends where it is not known what one of them has.
 */
export function fillGaps<Item>(list: (Item | null)[], others: (Item | null)[][]): (Item | null)[] {
  const known = Math.min(...others.map(({ length }) => length));
  const filled: (Item | null)[] = [];
  let gaps = 0;
  for (const item of list) {
    const found = item ?? others.find((other) => other[gaps] != null)?.[gaps] ?? null;
    if (item === null && found === null && gaps >= known) break;
    if (item === null) gaps += 1;
    filled.push(found);
  }
  return filled;
}

/**
 * Visitors of one path may be spread over all objects. A path that is not among the busiest of any object is left out, as it
 * is for a tunnel with one object.
 */
export function mergeBreakdowns(counted: CaptureBreakdown[]): CaptureBreakdown {
  const [first, ...others] = counted;
  return others.reduce(addBreakdowns, first!);
}

function addBreakdowns(one: CaptureBreakdown, other: CaptureBreakdown): CaptureBreakdown {
  return {
    requests: one.requests + other.requests,
    isComplete: one.isComplete && other.isComplete,
    statuses: addCounts<StatusClass>(one.statuses, other.statuses),
    errors: addCounts<ErrorCode>(one.errors, other.errors),
    latency: one.latency.map((count, step) => count + other.latency[step]!),
    paths: addPaths(one.paths, other.paths),
  };
}

type Counts<Name extends string> = Partial<Record<Name, number>>;

function addCounts<Name extends string>(one: Counts<Name>, other: Counts<Name>): Counts<Name> {
  const sums: Counts<Name> = { ...one };
  for (const name of Object.keys(other) as Name[]) {
    sums[name] = (sums[name] ?? 0) + (other[name] ?? 0);
  }
  return sums;
}

function addPaths(one: PathCounts[], other: PathCounts[]): PathCounts[] {
  const sums = new Map(one.map((counts) => [counts.path, counts]));
  for (const counts of other) {
    const known = sums.get(counts.path);
    sums.set(counts.path, known ? addPathCounts(known, counts) : counts);
  }
  return [...sums.values()].sort(byRequests).slice(0, BREAKDOWN_MAX_PATHS);
}

function addPathCounts(one: PathCounts, other: PathCounts): PathCounts {
  return {
    path: one.path,
    requests: one.requests + other.requests,
    failed: one.failed + other.failed,
    answered: one.answered + other.answered,
    latencySumMs: one.latencySumMs + other.latencySumMs,
  };
}
