/**
 * Charges a tunnel's traffic to the capability token of the agent that serves it. Stored in totals by token and
 * month, so that a token that is used again continues its count and a report can be sent twice.
 */
import type { TokenUsage } from "../../rpc.ts";
import type { UsageTotals } from "./usage.ts";

/** The traffic of one token in one month. */
export interface MonthlyTraffic {
  bytes: number;
  requests: number;
  /** Whether the database has this total. The name is part of the storage format. */
  isTold: boolean;
}

/** `2026-11`, in UTC. */
export function formatMonth(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 7);
}

/** The month before the one of this moment. */
function formatPreviousMonth(nowMs: number): string {
  const now = new Date(nowMs);
  return formatMonth(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1));
}

export class Spending {
  /** By month and token. */
  readonly #byTokenAndMonth: Map<string, MonthlyTraffic>;
  readonly #totals: UsageTotals;
  /** null while no agent serves: then no token is charged. */
  #tokenNonce: string | null;
  #charged: { bytes: number; requests: number };

  /** @param totals the tunnel's live totals. */
  constructor(saved: Map<string, MonthlyTraffic>, totals: UsageTotals, tokenNonce: string | null) {
    this.#byTokenAndMonth = saved;
    this.#totals = totals;
    this.#tokenNonce = tokenNonce;
    this.#charged = toCharge(totals);
  }

  /** Traffic that is counted from here on is charged to this token. */
  setChargedToken(tokenNonce: string | null, nowMs: number): void {
    this.#settle(nowMs);
    this.#tokenNonce = tokenNonce;
  }

  /** Traffic that `count` adds is charged to this token, whichever agent serves. null: to none. */
  chargeTo(tokenNonce: string | null, count: () => void, nowMs: number): void {
    const serving = this.#tokenNonce;
    this.setChargedToken(tokenNonce, nowMs);
    count();
    this.setChargedToken(serving, nowMs);
  }

  /** Adds what another object of the tunnel has charged to a token. */
  add({ tokenNonce, month, bytes, requests }: TokenUsage): void {
    if (bytes === 0 && requests === 0) return;
    const key = toKey(month, tokenNonce);
    const before = this.#byTokenAndMonth.get(key) ?? { bytes: 0, requests: 0 };
    this.#byTokenAndMonth.set(key, {
      bytes: before.bytes + bytes,
      requests: before.requests + requests,
      isTold: false,
    });
  }

  /**
   * The totals that the database does not have yet. Those of last month are still stored: the tunnel's other objects may report
   * late, and the clock may be set back. The database would ignore a total that began again.
   */
  getUnreported(nowMs: number): TokenUsage[] {
    this.#settle(nowMs);
    const oldestMonth = formatPreviousMonth(nowMs);
    const unreported: TokenUsage[] = [];
    for (const [key, { bytes, requests, isTold }] of this.#byTokenAndMonth) {
      const [month = "", tokenNonce = ""] = key.split(":");
      if (!isTold) unreported.push({ tokenNonce, month, bytes, requests });
      else if (month < oldestMonth) this.#byTokenAndMonth.delete(key);
    }
    return unreported;
  }

  markReported(spending: TokenUsage[]): void {
    for (const { tokenNonce, month, bytes, requests } of spending) {
      const traffic = this.#byTokenAndMonth.get(toKey(month, tokenNonce));
      if (traffic?.bytes === bytes && traffic.requests === requests) traffic.isTold = true;
    }
  }

  /** To be saved together with the tunnel's totals, after `getUnreported` has charged all traffic. */
  get stored(): Map<string, MonthlyTraffic> {
    return this.#byTokenAndMonth;
  }

  #settle(nowMs: number): void {
    const now = toCharge(this.#totals);
    const bytes = now.bytes - this.#charged.bytes;
    const requests = now.requests - this.#charged.requests;
    this.#charged = now;
    if (this.#tokenNonce === null || (bytes === 0 && requests === 0)) return;
    this.add({ tokenNonce: this.#tokenNonce, month: formatMonth(nowMs), bytes, requests });
  }
}

function toKey(month: string, tokenNonce: string): string {
  return `${month}:${tokenNonce}`;
}

function toCharge({ bytesIn, bytesOut, requests }: UsageTotals) {
  return { bytes: bytesIn + bytesOut, requests };
}
