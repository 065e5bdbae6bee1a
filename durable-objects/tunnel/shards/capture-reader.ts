/** Reads what all objects of a tunnel have captured. The first one is asked, and asks the others. */
import type { CapturedVisit } from "../../../access/policy-dry-run.ts";
import type {
  CaptureDetail,
  CaptureFilter,
  CaptureSummary,
} from "../../../protocol/schemas/inspector/captures.ts";
import type { CaptureBreakdown } from "../captures/reading/breakdown.ts";
import type { Captures } from "../captures/captures.ts";
import { fillGaps, mergeBreakdowns, mergeNewest } from "./merge-captures.ts";
import type { Shards } from "./shards.ts";

/** The calls that another object of the tunnel answers from its own captures. */
export interface CaptureSource {
  listCaptures(filter: CaptureFilter): Promise<CaptureSummary[]>;
  breakDownCaptures(sinceMs: number, maxRequests: number): Promise<CaptureBreakdown>;
  listVisits(limit: number, readsHeaders: boolean): Promise<CapturedVisit[]>;
  getCaptures(ids: string[]): Promise<(CaptureDetail | null)[]>;
}

type OwnCaptures = Pick<Captures, "list" | "breakDown" | "listVisits" | "findDetails">;
type OtherObjects = Pick<Shards<CaptureSource>, "forOthers">;

export class CaptureReader {
  readonly #own: OwnCaptures;
  readonly #shards: OtherObjects;

  constructor(own: OwnCaptures, shards: OtherObjects) {
    this.#own = own;
    this.#shards = shards;
  }

  /** Newest first. */
  async list(filter: CaptureFilter): Promise<CaptureSummary[]> {
    const others = this.#shards.forOthers((it) => it.listCaptures(filter));
    const lists = await Promise.all([this.#own.list(filter), others]);
    return mergeNewest([lists[0], ...lists[1]], filter.limit);
  }

  async breakDown(sinceMs: number, maxRequests: number): Promise<CaptureBreakdown> {
    const others = this.#shards.forOthers((it) => it.breakDownCaptures(sinceMs, maxRequests));
    const counted = await Promise.all([this.#own.breakDown(sinceMs, maxRequests), others]);
    return mergeBreakdowns([counted[0], ...counted[1]]);
  }

  /** The newest requests of visitors, oldest first. */
  async listVisits(limit: number, readsHeaders: boolean): Promise<CapturedVisit[]> {
    const others = this.#shards.forOthers((it) => it.listVisits(limit, readsHeaders));
    const lists = await Promise.all([this.#own.listVisits(limit, readsHeaders), others]);
    return mergeNewest([lists[0], ...lists[1]], limit).reverse();
  }

  /** The first of these, as many as fit into one answer; null for those that no object has. */
  async find(ids: string[]): Promise<(CaptureDetail | null)[]> {
    const own = await this.#own.findDetails(ids);
    const missing = ids.filter((_, index) => own[index] === null);
    if (missing.length === 0) return own;
    return fillGaps(own, await this.#shards.forOthers((it) => it.getCaptures(missing)));
  }
}
