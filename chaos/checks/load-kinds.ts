/** Each kind of load succeeds: the other checks find nothing wrong when nothing is answered. */
import {
  CONVERSATION_KINDS,
  WRITE_KINDS,
  type ConversationEntry,
  type ConversationKind,
  type History,
  type RequestEntry,
  type RequestKind,
  type WriteKind,
} from "../history.ts";
import type { LoadSize } from "../load/load.ts";
import { SMALL_KINDS, TRANSFER_KINDS } from "../load/visitors.ts";
import { toCheckResult, type CheckResult } from "./check.ts";
import { NORMAL_CLOSE } from "./conversations.ts";

type LoadKind = RequestKind | ConversationKind | WriteKind;

/** With fewer attempts, faults may have made all of them fail. */
export const ATTEMPTS_MIN = 20;

interface Attempt {
  kind: LoadKind;
  startedAtMs: number;
  endedAtMs: number;
  hasSucceeded: boolean;
}

/** @returns the kinds of load that run in an experiment. */
export function listLoadKinds(size: LoadSize, hasTcpAgent: boolean): LoadKind[] {
  const counts: Record<ConversationKind, number> = {
    websocket: size.webSockets,
    tcp: hasTcpAgent ? size.tcpStreams : 0,
  };
  return [
    ...(size.visitors > 0 ? SMALL_KINDS : []),
    ...(size.transfers > 0 ? new Set(TRANSFER_KINDS) : []),
    ...CONVERSATION_KINDS.filter((kind) => counts[kind] > 0),
    ...(size.writers > 0 ? WRITE_KINDS : []),
  ];
}

/** @param untilMs when the last fault had ended. */
export function checkLoadUnderFaults(
  history: History,
  kinds: LoadKind[],
  untilMs: number,
): CheckResult {
  const attempts = listAttempts(history).filter(({ endedAtMs }) => endedAtMs <= untilMs);
  const failures = findFailures(attempts, kinds).filter(({ count }) => count >= ATTEMPTS_MIN);
  return toCheckResult(
    "no kind of load fails every time while there are faults",
    failures.map(({ text }) => text),
    `${kinds.length} kinds of load`,
  );
}

/** @param sinceMs when the service had recovered from the last fault. */
export function checkLoadAfterFaults(
  history: History,
  kinds: LoadKind[],
  sinceMs: number,
): CheckResult {
  const attempts = listAttempts(history).filter(({ startedAtMs }) => startedAtMs >= sinceMs);
  return toCheckResult(
    "every kind of load succeeds after the last fault",
    findFailures(attempts, kinds).map(({ text }) => text),
    `${kinds.length} kinds of load`,
  );
}

function findFailures(attempts: Attempt[], kinds: LoadKind[]): { text: string; count: number }[] {
  const byKind = Map.groupBy(attempts, ({ kind }) => kind);
  return kinds.flatMap((kind) => {
    const all = byKind.get(kind) ?? [];
    if (all.some(({ hasSucceeded }) => hasSucceeded)) return [];
    return [{ text: `${kind}: none of ${all.length}`, count: all.length }];
  });
}

function listAttempts(history: History): Attempt[] {
  return [
    ...history
      .list("request")
      .map((entry) => ({ ...entry, hasSucceeded: hasExpectedOutcome(entry) })),
    ...history
      .list("conversation")
      .map((entry) => ({ ...entry, kind: entry.over, hasSucceeded: isComplete(entry) })),
    ...history
      .list("write")
      .map((entry) => ({ ...entry, hasSucceeded: entry.result === "acknowledged" })),
  ];
}

function hasExpectedOutcome({ kind, outcome, status }: RequestEntry): boolean {
  return status === 200 && outcome === (kind === "broken-download" ? "cut" : "complete");
}

function isComplete({ over, sent, received, end }: ConversationEntry): boolean {
  return sent > 0 && received === sent && (over === "tcp" || end === NORMAL_CLOSE);
}
