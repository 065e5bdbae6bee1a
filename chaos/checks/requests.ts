/** What visitors and the local server saw of the same requests. */
import type { ArrivalEntry, History, RequestEntry } from "../history.ts";
import { toCheckResult, type CheckResult } from "./check.ts";

/** Failures that a visitor may see while a part of the service is down. */
const ALLOWED_REFUSALS = new Set([
  "agent_offline",
  "origin_unreachable",
  "origin_failed",
  "origin_timeout",
  "unavailable",
  "not_ready",
]);

export function checkRequests(history: History): CheckResult[] {
  const requests = history.list("request");
  const arrivals = Map.groupBy(history.list("arrival"), ({ id }) => id);
  const posts = requests.filter(isPost);
  return [
    toCheckResult(
      "no POST request reached the local server twice",
      [...arrivals.values()]
        .filter((all) => isPost(all[0]!) && all.length > 1)
        .map((all) => `${all[0]!.id} arrived ${all.length} times`),
      `${posts.length} POST requests`,
    ),
    toCheckResult(
      "a POST request that was answered by the local server has reached it",
      posts
        .filter(({ id, outcome }) => outcome === "complete" && !arrivals.has(id))
        .map(({ id }) => id),
      `${posts.filter(({ outcome }) => outcome === "complete").length} answers`,
    ),
    toCheckResult(
      "no body that was incomplete or of another request was taken for a whole one",
      [
        ...requests.filter(isWrongBody).map(describeRequest),
        ...findWrongUploads(requests, arrivals),
      ],
      `${requests.filter(({ outcome }) => outcome === "complete").length} whole responses, ` +
        `${requests.filter(({ kind }) => kind === "broken-download").length} broken by the local server`,
    ),
    toCheckResult(
      "errors of the service are those of a part that is down",
      requests
        .filter(
          ({ outcome, detail = "" }) => outcome === "refused" && !ALLOWED_REFUSALS.has(detail),
        )
        .map(describeRequest),
      `${requests.filter(({ outcome }) => outcome === "refused").length} errors`,
    ),
  ];
}

/**
 * A response whose beginning has arrived is cut when the local server breaks it off, and does not stay open.
 *
 * @param sinceMs when the service had recovered from the last fault: before it, a fault may have stopped the bytes.
 */
export function checkBrokenResponses(history: History, sinceMs: number): CheckResult {
  const broken = history
    .list("request")
    .filter(({ kind, status }) => kind === "broken-download" && status === 200)
    .filter(({ startedAtMs }) => startedAtMs >= sinceMs);
  return toCheckResult(
    "a response that the local server breaks off is cut",
    broken.filter(({ outcome }) => outcome !== "cut").map(describeRequest),
    `${broken.length} responses after the last fault`,
  );
}

function isPost({ kind }: Pick<RequestEntry, "kind">): boolean {
  return kind === "order" || kind === "upload";
}

function isWrongBody({ outcome, kind }: RequestEntry): boolean {
  return outcome === "corrupt" || (kind === "broken-download" && outcome === "complete");
}

/** The local server took wrong bytes for a whole body, or answered one that it had not received completely. */
function findWrongUploads(
  requests: RequestEntry[],
  arrivals: Map<string, ArrivalEntry[]>,
): string[] {
  const completed = new Set(
    requests.filter(({ outcome }) => outcome === "complete").map(({ id }) => id),
  );
  return [...arrivals.values()]
    .flat()
    .filter(({ id, body }) => body === "corrupt" || (body === "cut" && completed.has(id)))
    .map(({ id, body }) => `the upload ${id} is ${body}`);
}

export function describeRequest({ id, kind, outcome, status, detail = "" }: RequestEntry): string {
  return `${kind} ${id}: ${outcome} ${status} ${detail}`;
}
