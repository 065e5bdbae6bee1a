/**
 * One line of the log for each traced request and each part that it passed, with the id that the visitor gets in
 * `underpass-request-id`. The lines contain neither targets nor headers.
 */
import { LimitedLog } from "../log.ts";

/** errors: requests whose response has a status from 500. */
export const TRACE_MODES = ["off", "errors", "all"] as const;
export type TraceMode = (typeof TRACE_MODES)[number];

const ERROR_STATUS_MIN = 500;

interface TracedRequest {
  requestId: string;
  status: number;
  /** From the arrival of the request at this part to the head of its response there. */
  durationMs: number;
  /** Set by the object of the tunnel. */
  tunnelId?: string | undefined;
}

export class RequestTrace {
  readonly #part: string;
  readonly #mode: TraceMode;
  readonly #log = new LimitedLog("info", "request_traced");

  /** @param mode of the setting `TRACE_REQUESTS`; any other value is `off`. */
  constructor(part: string, mode: unknown) {
    this.#part = part;
    this.#mode = TRACE_MODES.find((known) => known === mode) ?? "off";
  }

  get isOff(): boolean {
    return this.#mode === "off";
  }

  includes(status: number): boolean {
    return this.#mode === "all" || (this.#mode === "errors" && status >= ERROR_STATUS_MIN);
  }

  /** @param nowMs since the epoch. */
  record({ durationMs, ...request }: TracedRequest, nowMs: number): void {
    if (!this.includes(request.status)) return;
    const roundedMs = Math.round(durationMs * 10) / 10;
    this.#log.record({ part: this.#part, ...request, durationMs: roundedMs }, nowMs);
  }
}
