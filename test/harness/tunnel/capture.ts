/** Builds a captured request as the inspector returns it. */
import type { CaptureDetail } from "../../../protocol/schemas/inspector/captures.ts";

interface Bodies {
  sent?: Uint8Array | string;
  answered?: Uint8Array | string;
}

/** @param bodies as bytes; sizes and base64 follow from them. */
export function buildCapture(event: Partial<CaptureDetail>, bodies: Bodies = {}): CaptureDetail {
  const sent = Buffer.from(bodies.sent ?? "");
  const answered = Buffer.from(bodies.answered ?? "");
  return {
    id: "019a0000-0000-7000-8000-000000000001",
    tunnel_id: "00000000-0000-4000-8000-000000000002",
    timestamp: "2026-11-21T23:00:00.000Z",
    kind: "http",
    state: "complete",
    error: null,
    replay_of: null,
    method: "GET",
    path: "/",
    query: null,
    refused_by: null,
    status: 200,
    latency_ms: 12,
    duration_ms: 20,
    request_size: sent.length,
    response_size: answered.length,
    client_ip: "203.0.113.7",
    request_headers: {},
    response_headers: {},
    request_body: sent.toString("base64"),
    response_body: answered.toString("base64"),
    truncated: { request: false, response: false },
    frames: [],
    frames_total: 0,
    events: [],
    events_total: 0,
    ...event,
  };
}
