/** The requests that the screen remembers: the newest ones, the filter, and which one is selected. */
import {
  CaptureFilterError,
  parseCaptureFilter,
  type CaptureExpression,
  type CaptureFilterField,
  type FilteredRequest,
} from "../../protocol/captures/filter.ts";
import { splitTarget } from "../../protocol/request-target.ts";
import { explainError } from "../error-message.ts";
import type { RequestReport } from "../library/types.ts";
import type { ConnectionReport } from "../tcp/connection-report.ts";
import { formatPath } from "./text.ts";
import { PROGRAM } from "../program.ts";

/** Fields of the filter that the agent does not know of a request. */
const UNKNOWN_FIELDS: readonly CaptureFilterField[] = ["ip", "error"];

/** Older requests are forgotten, so that the agent's memory does not grow. */
export const REQUESTS_MAX = 500;

/** A connection of a TCP tunnel, with the fields that it shares with requests. */
type ListedConnection = Omit<RequestReport, "kind" | "requestId"> & { kind: "connection" };

export interface RequestEntry {
  report: RequestReport | ListedConnection;
  /** Which tunnel it belongs to; the screen shows it when there are several. */
  tunnel: string;
  /** When the request was answered, or its stream opened. */
  atMs: number;
  /** When its stream was closed; null while it is open and for other requests. */
  closedAtMs: number | null;
  isOpen: boolean;
  isReplay: boolean;
}

export class RequestList {
  /** All requests since the start, without connections. */
  count = 0;
  #filter = "";
  #matches: CaptureExpression["matches"] = () => true;
  /** Why the filter can't be used; undefined when it can. */
  #filterProblem: string | undefined;
  /** Oldest first. */
  readonly #entries: RequestEntry[] = [];
  #selected: RequestEntry | undefined;

  /** In the language of `underpass logs --filter`. */
  get filter(): string {
    return this.#filter;
  }

  set filter(text: string) {
    this.#filter = text;
    try {
      this.#matches = parseScreenFilter(text);
      this.#filterProblem = undefined;
    } catch (error) {
      if (!(error instanceof CaptureFilterError)) throw error;
      this.#matches = () => false;
      this.#filterProblem = explainError(error);
    }
  }

  /** Why the filter leaves nothing to list; undefined when there are requests in the list, or none at all. */
  get filterNote(): string | undefined {
    if (this.#filterProblem !== undefined) return this.#filterProblem;
    const isEmpty = this.#entries.length > 0 && this.list().length === 0;
    return isEmpty ? "no request matches the filter" : undefined;
  }

  get selected(): RequestEntry | undefined {
    return this.#selected;
  }

  get openStreams(): number {
    return this.#entries.filter(({ isOpen }) => isOpen).length;
  }

  /** Adds a request; that of a stream which is in the list already changes nothing. */
  add(tunnel: string, report: RequestReport, nowMs: number): void {
    if (report.kind !== "request" && this.#find(report)) return;
    this.count += 1;
    this.#push(tunnel, report, nowMs);
  }

  /** Adds a connection that has ended. */
  addConnection(tunnel: string, connection: ConnectionReport, nowMs: number): void {
    const { address, via, durationMs, bytesIn, bytesOut, problem } = connection;
    // The columns of a request: method and path.
    const described = { method: via === "connect" ? via : "", path: address, status: 0, id: 0 };
    const measured = {
      durationMs,
      bytesIn,
      bytesOut,
      messages: 0,
      problem,
      abortReason: undefined,
    };
    this.#push(tunnel, { kind: "connection", ...described, ...measured }, nowMs);
  }

  openStream(tunnel: string, report: RequestReport, nowMs: number): void {
    this.add(tunnel, report, nowMs);
    const entry = this.#find(report);
    if (entry) entry.isOpen = true;
  }

  closeStream(report: RequestReport, nowMs: number): void {
    const entry = this.#find(report);
    if (!entry) return;
    entry.isOpen = false;
    entry.closedAtMs = nowMs;
  }

  markReplay(report: RequestReport): void {
    const entry = this.#find(report);
    if (entry) entry.isReplay = true;
  }

  /** @returns the requests that match the filter, newest first. */
  list(): RequestEntry[] {
    return this.#entries.filter((entry) => this.#matches(toFiltered(entry))).toReversed();
  }

  /** Selects the next older (1) or newer (-1) request; the newest when none is selected. */
  moveSelection(by: 1 | -1): void {
    const listed = this.list();
    const at = this.#selected ? listed.indexOf(this.#selected) : -1;
    this.#selected = at < 0 ? listed[0] : (listed[at + by] ?? this.#selected);
  }

  clearSelection(): void {
    this.#selected = undefined;
  }

  #push(tunnel: string, report: RequestEntry["report"], atMs: number): void {
    const entry = { report, tunnel, atMs, closedAtMs: null, isOpen: false, isReplay: false };
    this.#entries.push(entry);
    if (this.#entries.length > REQUESTS_MAX) this.#forgetOldest();
  }

  #find(report: RequestReport): RequestEntry | undefined {
    return this.#entries.findLast((entry) => entry.report === report);
  }

  /** A stream that is open stays in the list as long as there are others to forget. */
  #forgetOldest(): void {
    const at = Math.max(
      0,
      this.#entries.findIndex(({ isOpen }) => !isOpen),
    );
    const [forgotten] = this.#entries.splice(at, 1);
    if (forgotten === this.#selected) this.#selected = undefined;
  }
}

/** @throws CaptureFilterError */
function parseScreenFilter(text: string): CaptureExpression["matches"] {
  const { matches, fields } = parseCaptureFilter(text);
  const unknown = fields.find((field) => UNKNOWN_FIELDS.includes(field));
  if (unknown === undefined) return matches;
  throw new CaptureFilterError(
    `${unknown}: only the server knows it; use: ${PROGRAM} logs --filter ${unknown}:…`,
  );
}

const KINDS = {
  request: "http",
  events: "sse",
  websocket: "websocket",
  connection: "http",
} as const;

function getEndState({ problem, abortReason }: RequestEntry["report"]): FilteredRequest["state"] {
  if (problem !== undefined) return "failed";
  return abortReason === undefined ? "complete" : "aborted";
}

function toFiltered({ report, tunnel, isOpen }: RequestEntry): FilteredRequest {
  const {
    kind,
    method,
    path: target,
    status,
    durationMs,
    bytesIn,
    bytesOut,
    problem = "",
  } = report;
  const { path, query } = splitTarget(target);
  const texts = kind === "connection" ? ["tcp"] : [status, `${Math.floor(status / 100)}xx`];
  return {
    method,
    status: kind === "connection" || status === 0 ? null : status,
    path: formatPath(path),
    query: query && formatPath(query),
    duration_ms: durationMs,
    request_size: bytesIn,
    response_size: bytesOut,
    kind: KINDS[kind],
    state: isOpen ? "open" : getEndState(report),
    client_ip: "",
    error: null,
    otherText: [...texts, tunnel, problem].join(" "),
  };
}
