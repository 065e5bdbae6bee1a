/** One page of stored requests: `GET /inspector`. */
import type { CaptureSummary } from "../../protocol/schemas/inspector/captures.ts";
import { call } from "../api/session.ts";

/** As many as the API returns at most. */
export const CAPTURES_PAGE_ROWS = 500;

export interface CapturesQuery {
  tunnel_id?: string;
  method?: string;
  status?: string;
  path?: string;
  /** An id: only older requests. */
  after?: string;
  limit?: number;
}

/** Newest first. */
export function listCaptures(query: CapturesQuery, signal?: AbortSignal) {
  const path = `/inspector?${formatCapturesQuery({ limit: CAPTURES_PAGE_ROWS, ...query })}`;
  return call<CaptureSummary[]>("GET", path, undefined, signal);
}

export function formatCapturesQuery(query: CapturesQuery): string {
  const entries = Object.entries(query).map(([name, value]) => [name, String(value)]);
  return new URLSearchParams(entries).toString();
}
