/**
 * One line of the log for each traced request and each part that it passed, with the id that the visitor gets in
 * `underpass-request-id`. The lines contain neither targets nor headers.
 */
import { log } from "../log.ts";
import { takeFromBucket, type TokenBucket } from "../token-bucket.ts";

/** errors: requests whose response has a status from 500. */
export const TRACE_MODES = ["off", "errors", "all"] as const;
export type TraceMode = (typeof TRACE_MODES)[number];

/** So that traces fill no disk: 50 lines a second of one part in an isolate or process, and 200 at once. */
export const TRACE_LIMIT = { burst: 200, refillMs: 20 };
const ERROR_STATUS_MIN = 500;

export interface TracedRequest {
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
  #bucket: TokenBucket | undefined;
  #unlogged = 0;

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
    const { bucket, waitMs } = takeFromBucket(this.#bucket, TRACE_LIMIT, nowMs);
    this.#bucket = bucket;
    if (waitMs > 0) {
      this.#unlogged += 1;
      return;
    }
    log("info", "request_traced", {
      part: this.#part,
      ...request,
      durationMs: Math.round(durationMs * 10) / 10,
      ...(this.#unlogged > 0 && { unlogged: this.#unlogged }),
    });
    this.#unlogged = 0;
  }
}
