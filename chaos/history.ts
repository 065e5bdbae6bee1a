/** What the load did and what it saw, for the checks afterwards. With a file, also one JSON object a line. */
import { createWriteStream, type WriteStream } from "node:fs";
import { once } from "node:events";
import type { Fault } from "./faults/fault-plan.ts";

/** Times are in milliseconds since the history began, and include the one of the machine that caused the entry. */
interface TimeSpan {
  startedAtMs: number;
  endedAtMs: number;
}

/**
 * `complete`: a whole response of the local server, as it sent it. `corrupt`: one that was marked as whole and is not what
 * the local server sent. `refused`: an error of the service. `cut`: the connection ended before the end of the response.
 */
export type RequestOutcome =
  | "complete"
  | "corrupt"
  | "refused"
  | "cut"
  | "no connection"
  | "timed out";

export const REQUEST_KINDS = ["page", "order", "upload", "download", "broken-download"] as const;
/**
 * An `order` and an `upload` are POST requests, which must never be repeated. The local server breaks off the response to a
 * `broken-download`: the front proxy then cuts the visitor's connection, also when the response has no length
 * (docs/what-passes-through.md).
 */
export type RequestKind = (typeof REQUEST_KINDS)[number];

export interface RequestEntry extends TimeSpan {
  type: "request";
  id: string;
  tunnel: string;
  kind: RequestKind;
  outcome: RequestOutcome;
  /** 0: there was no response. */
  status: number;
  /** The error code of a refusal, or what was wrong. */
  detail?: string;
  /** The number of the policy under which the request reached the local server. */
  policy?: number;
}

/**
 * `acknowledged`: the API answered with success. `refused`: it answered that nothing was changed. `unknown`: there was no
 * answer, or one that the change may still be made.
 */
export type WriteResult = "acknowledged" | "refused" | "unknown";

export const WRITE_KINDS = ["create-tunnel", "delete-tunnel", "mint-token", "set-policy"] as const;
export type WriteKind = (typeof WRITE_KINDS)[number];

export interface WriteEntry extends TimeSpan {
  type: "write";
  kind: WriteKind;
  /** The name of what is written, which no other write has, or the number of a policy. */
  name: string;
  result: WriteResult;
  status: number;
}

export const CONVERSATION_KINDS = ["websocket", "tcp"] as const;
export type ConversationKind = (typeof CONVERSATION_KINDS)[number];

/** A conversation over a WebSocket or a TCP tunnel: numbered messages that the local server sends back. */
export interface ConversationEntry extends TimeSpan {
  type: "conversation";
  over: ConversationKind;
  tunnel: string;
  sent: number;
  received: number;
  /** The first message that was not the expected one. */
  mismatch?: string;
  end: string;
}

export interface FaultEntry {
  type: "fault";
  atMs: number;
  fault: Fault;
  /** Why it could not be injected here. */
  skipped?: string;
}

/** A program that ended by itself, other than by a fault. */
interface ExitEntry {
  type: "exit";
  atMs: number;
  program: string;
  code: number | null;
  detail: string;
}

/** What the local server saw of a request: once for each time that it arrived. */
export interface ArrivalEntry {
  type: "arrival";
  atMs: number;
  id: string;
  kind: RequestKind;
  /** Whether the end of an upload was seen, and then whether its bytes were right. */
  body?: "complete" | "corrupt" | "cut";
}

export type HistoryEntry =
  | RequestEntry
  | WriteEntry
  | ConversationEntry
  | FaultEntry
  | ExitEntry
  | ArrivalEntry;

export class History {
  readonly entries: HistoryEntry[] = [];
  readonly #startedAtMs = performance.now();
  readonly #file: WriteStream | undefined;

  /** @param path of a file that receives each entry as a line of JSON. */
  constructor(path?: string) {
    if (path !== undefined) this.#file = createWriteStream(path);
  }

  /** Milliseconds since the history began. */
  now(): number {
    return Math.round(performance.now() - this.#startedAtMs);
  }

  add(entry: HistoryEntry): void {
    this.entries.push(entry);
    this.#file?.write(`${JSON.stringify(entry)}\n`);
  }

  /** Adds what became known later about the newest entry of a fault. */
  markSkipped(entry: FaultEntry, skipped: string): void {
    entry.skipped = skipped;
    this.#file?.write(`${JSON.stringify(entry)}\n`);
  }

  list<Type extends HistoryEntry["type"]>(type: Type): Extract<HistoryEntry, { type: Type }>[] {
    return this.entries.filter(
      (entry): entry is Extract<HistoryEntry, { type: Type }> => entry.type === type,
    );
  }

  async close(): Promise<void> {
    if (!this.#file) return;
    this.#file.end();
    await once(this.#file, "close");
  }
}
