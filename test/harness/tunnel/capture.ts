/** Builds a captured request as the inspector returns it. */
import type {
  CaptureDetail,
  CaptureSummary,
} from "../../../protocol/schemas/inspector/captures.ts";

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
    truncated: { request: false, response: false, request_head: false, response_head: false },
    frames: [],
    frames_total: 0,
    events: [],
    events_total: 0,
    ...event,
  };
}

/** The id of the `number`-th request: they sort by their numbers. */
export function getCaptureId(number: number): string {
  const time = (0x019a_0000_0000 + number).toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000002`;
}

/** One as the list of the inspector has it. */
export function buildCaptureSummary(
  number: number,
  event: Partial<CaptureSummary> = {},
): CaptureSummary {
  return buildCapture({ path: `/${number}`, ...event, id: getCaptureId(number) });
}
