/** One page of stored requests: `GET /inspector`. */
import type { CaptureSummary } from "../../protocol/schemas/inspector/captures.ts";
import { call } from "../api/session.ts";
import { formatCapturesQuery, type CapturesQuery } from "./captures-query.ts";

/** Newest first. */
export function listCaptures(query: CapturesQuery): Promise<CaptureSummary[]> {
  return call("GET", `/inspector?${formatCapturesQuery(query)}`);
}
