/** One page of stored requests: `GET /inspector`. */
import type { CaptureSummary } from "../../protocol/schemas/inspector/captures.ts";
import { load } from "../api/session.ts";
import { formatCapturesQuery, type CapturesQuery } from "./captures-query.ts";

/** Newest first. */
export function listCaptures(query: CapturesQuery): Promise<CaptureSummary[]> {
  return load(`/inspector?${formatCapturesQuery(query)}`);
}
