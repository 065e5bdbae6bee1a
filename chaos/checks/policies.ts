/** A policy applies from the next request on: the local server sees its number. */
import type { History } from "../history.ts";
import { toCheckResult, type CheckResult } from "./check.ts";

/** @param tunnel whose policies were changed. */
export function checkPolicies(history: History, tunnel: string): CheckResult {
  const writes = history.list("write").filter(({ kind }) => kind === "set-policy");
  const acknowledged = writes.filter(({ result }) => result === "acknowledged");
  // Such a write may be made at any time after it was sent, even after a later one.
  const unknown = new Set(
    writes.filter(({ result }) => result === "unknown").map(({ name }) => Number(name)),
  );
  const requests = history
    .list("request")
    .filter((request) => request.tunnel === tunnel && request.outcome === "complete");
  const stale = requests.flatMap(({ id, startedAtMs, policy = 0 }) => {
    const inForce = acknowledged.findLast(({ endedAtMs }) => endedAtMs < startedAtMs);
    const least = Number(inForce?.name ?? 0);
    return policy >= least || unknown.has(policy) ? [] : [`${id}: ${policy}, not ${least}`];
  });
  return toCheckResult(
    "an acknowledged policy applies to every later request",
    stale,
    `${requests.length} requests under ${acknowledged.length} policies`,
  );
}
