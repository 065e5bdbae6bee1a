/** The messages of a WebSocket and the events of an event stream as one kind of list. */
import type { CaptureDetail } from "../../../../protocol/schemas/inspector/captures.ts";
import { fromBase64, toUtf8 } from "../../../../shared/bytes.ts";

export interface StreamItem {
  /** Since the request was received. */
  offsetMs: number;
  from: "client" | "server";
  /** `text`, `binary`, `close`, or the name of an event. */
  kind: string;
  /** Bytes of the whole message. */
  size: number;
  /** The stored beginning. */
  bytes: Uint8Array<ArrayBuffer>;
  /** null for bytes that are not text. */
  text: string | null;
  close: { code: number; reason: string } | null;
  eventId: string | null;
}

export function listStreamItems(request: CaptureDetail): StreamItem[] {
  const startMs = Date.parse(request.timestamp);
  const frames = request.frames.map((frame): StreamItem => {
    const bytes = fromBase64(frame.data) ?? new Uint8Array();
    const close = frame.kind === "close" ? readClose(bytes) : null;
    return {
      offsetMs: Date.parse(frame.timestamp) - startMs,
      from: frame.from,
      kind: frame.kind,
      size: frame.size,
      bytes,
      text: frame.kind === "text" ? new TextDecoder().decode(bytes) : null,
      close,
      eventId: null,
    };
  });
  const events = request.events.map(({ timestamp, size, event, id, data }): StreamItem => ({
    offsetMs: Date.parse(timestamp) - startMs,
    from: "server",
    kind: event,
    size,
    bytes: toUtf8(data),
    text: data,
    close: null,
    eventId: id,
  }));
  return [...frames, ...events];
}

/** Two bytes of the code, then the reason. */
function readClose(bytes: Uint8Array): StreamItem["close"] {
  if (bytes.length < 2) return { code: 1005, reason: "" };
  const code = (bytes[0]! << 8) | bytes[1]!;
  return { code, reason: new TextDecoder().decode(bytes.subarray(2)) };
}

/** RFC 6455 §7.4, and the registry of IANA. */
const CLOSE_MEANINGS: Record<number, string> = {
  1000: "Normal closure",
  1001: "Going away: the page was left, or the server stops",
  1002: "Protocol error",
  1003: "Unsupported data",
  1005: "Closed without a code",
  1006: "The connection was lost",
  1007: "Invalid data, such as text that is not UTF-8",
  1008: "Policy violation",
  1009: "A message was too large",
  1010: "A required extension is missing",
  1011: "The server had an internal error",
  1012: "The server restarts",
  1013: "Try again later",
  1014: "A gateway received an invalid response",
  1015: "The TLS handshake failed",
};

export function explainClose(code: number): string {
  if (code >= 4000) return "A code of this application";
  return CLOSE_MEANINGS[code] ?? (code >= 3000 ? "A code of a library" : "Unknown code");
}

interface StreamFilter {
  /** Empty: both. */
  from: string;
  /** A part of the text, or of the kind, in any case. */
  text: string;
}

export function filterStreamItems(items: StreamItem[], { from, text }: StreamFilter): StreamItem[] {
  const wanted = text.toLowerCase();
  return items.filter((item) => {
    if (from !== "" && item.from !== from) return false;
    if (wanted === "") return true;
    const texts = [item.kind, item.text ?? "", item.close?.reason ?? ""];
    return texts.some((each) => each.toLowerCase().includes(wanted));
  });
}
