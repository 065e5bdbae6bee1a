/**
 * Captured requests as an HTTP archive (HAR 1.2), which browsers' developer tools and debugging proxies read.
 * Data that the format has no field for is in fields that start with an underscore, as the format requires.
 */
import { toBase64, fromBase64 } from "../../../shared/bytes.ts";
import type {
  CaptureDetail,
  CapturedMessage,
} from "../../../protocol/schemas/inspector/captures.ts";
import { joinTarget } from "../../../protocol/request-target.ts";
import { SERVICE_VERSION } from "../../../protocol/version.ts";
import { decodeText, decompress } from "./bodies.ts";

interface HarOptions {
  /** The origin of the tunnel, without a trailing slash. */
  origin: string;
  /** If false, bodies and messages are omitted. */
  includesBodies: boolean;
  /** Gets the sizes of what is decompressed. */
  onDecompressed?: (bytes: number) => void;
}

interface NameValue {
  name: string;
  value: string;
}

const OMITTED = "omitted: the archive has reached its maximum size";
const REQUEST_HEAD_CUT = "the headers and the end of a long path were not captured";
const RESPONSE_HEAD_CUT = "the headers were not captured";

/** The archive around its entries. They are written one by one, because together they can be large. */
export const HAR_START = `{"log":{"version":"1.2","creator":${JSON.stringify({
  name: "Underpass",
  version: SERVICE_VERSION,
})},"pages":[],"entries":[`;
export const HAR_END = "]}}\n";

export async function buildHarEntry(capture: CaptureDetail, options: HarOptions) {
  const wait = capture.latency_ms ?? 0;
  const receive = Math.max(0, (capture.duration_ms ?? wait) - wait);
  return {
    startedDateTime: capture.timestamp,
    time: wait + receive,
    request: buildRequest(capture, options),
    response: await buildResponse(capture, options),
    cache: {},
    timings: { send: 0, wait, receive },
    _id: capture.id,
    _tunnelId: capture.tunnel_id,
    _clientAddress: capture.client_ip,
    _state: capture.state,
    ...(capture.error === null ? {} : { _error: capture.error, comment: capture.error }),
    ...(capture.replay_of === null ? {} : { _replayOf: capture.replay_of }),
    ...(options.includesBodies ? buildStreamFields(capture) : {}),
  };
}

function buildRequest(capture: CaptureDetail, { origin, includesBodies }: HarOptions) {
  const { method, path, query, request_headers: headers } = capture;
  return {
    method,
    url: origin + joinTarget(path, query),
    httpVersion: "HTTP/1.1",
    cookies: parseCookies(headers["cookie"]),
    headers: toNameValues(headers),
    queryString: parseQuery(query),
    ...buildPostData(capture, includesBodies),
    headersSize: -1,
    bodySize: capture.request_size,
    ...toComment(capture.truncated.request_head ? [REQUEST_HEAD_CUT] : []),
  };
}

function buildPostData(capture: CaptureDetail, includesBodies: boolean) {
  const bytes = fromBase64(capture.request_body) ?? new Uint8Array();
  if (bytes.length === 0) return {};
  const text = decodeText(bytes);
  const notes = [
    ...(includesBodies ? [] : [OMITTED]),
    ...(capture.truncated.request ? [describeCut(bytes.length, capture.request_size)] : []),
  ];
  const content = text ?? capture.request_body;
  return {
    postData: {
      mimeType: capture.request_headers["content-type"] ?? "application/octet-stream",
      params: [],
      text: includesBodies ? content : "",
      ...(text === null && includesBodies ? { _encoding: "base64" } : {}),
      ...toComment(notes),
    },
  };
}

async function buildResponse(capture: CaptureDetail, options: HarOptions) {
  const { response_headers: headers } = capture;
  return {
    // Browsers write 0 for a request without a response.
    status: capture.status ?? 0,
    statusText: "",
    httpVersion: "HTTP/1.1",
    cookies: parseSetCookies(headers["set-cookie"]),
    headers: toNameValues(headers),
    content: await buildContent(capture, options),
    redirectURL: headers["location"] ?? "",
    ...toComment(capture.truncated.response_head ? [RESPONSE_HEAD_CUT] : []),
    headersSize: -1,
    bodySize: capture.response_size,
  };
}

/** Decompressed, as the format requires. A body that can't be decompressed is included as it was sent, with a comment. */
async function buildContent(
  capture: CaptureDetail,
  { includesBodies, onDecompressed }: HarOptions,
) {
  const { response_headers: headers, response_body: body } = capture;
  const sent = fromBase64(body) ?? new Uint8Array();
  const coding = headers["content-encoding"];
  const plain = includesBodies ? await decompress(sent, coding, onDecompressed) : sent;
  const bytes = plain ?? sent;
  const text = plain && decodeText(plain);
  const size = capture.truncated.response ? capture.response_size : bytes.length;
  const notes = [
    ...(includesBodies || sent.length === 0 ? [] : [OMITTED]),
    ...(capture.truncated.response ? [describeCut(sent.length, capture.response_size)] : []),
    ...(plain ? [] : [`not decompressed: ${coding}`]),
  ];
  const encoded = text === null ? { text: toBase64(bytes), encoding: "base64" } : { text };
  return {
    size,
    mimeType: headers["content-type"] ?? "x-unknown",
    ...(plain && plain !== sent ? { compression: size - sent.length } : {}),
    ...(includesBodies && bytes.length > 0 ? encoded : {}),
    ...toComment(notes),
  };
}

function buildStreamFields({ kind, frames, events }: CaptureDetail) {
  switch (kind) {
    case "http":
      return {};
    case "sse":
      return { _resourceType: "eventsource", _events: events };
    case "websocket":
      return { _resourceType: "websocket", _webSocketMessages: frames.map(toHarMessage) };
  }
}

const OPCODES = { text: 1, binary: 2, close: 8 } as const;

/** In Chrome's format, with `_size` where only the beginning of the message was recorded. */
function toHarMessage({ from, timestamp, kind, size, data }: CapturedMessage) {
  const bytes = fromBase64(data) ?? new Uint8Array();
  return {
    type: from === "client" ? "send" : "receive",
    time: Date.parse(timestamp) / 1000,
    opcode: OPCODES[kind],
    data: kind === "text" ? new TextDecoder().decode(bytes) : data,
    ...(size > bytes.length ? { _size: size } : {}),
  };
}

function toNameValues(headers: Record<string, string>): NameValue[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    value.split("\n").map((line) => ({ name, value: line })),
  );
}

function parseQuery(query: string | null): NameValue[] {
  return (query ?? "")
    .split("&")
    .filter((part) => part !== "")
    .map((part) => {
      const [name, value] = splitAt(part, "=");
      return { name: decodeComponent(name), value: decodeComponent(value) };
    });
}

function decodeComponent(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}

/**
 * Not `parse` of hono/utils/cookie: an archive shows cookies as they were sent, and that function decodes values,
 * removes quotes, and drops repeated names and invalid values.
 */
function parseCookies(header: string | undefined): NameValue[] {
  return (header ?? "")
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.includes("="))
    .map((pair) => {
      const [name, value] = splitAt(pair, "=");
      return { name, value };
    });
}

/** @param lines one Set-Cookie header a line. hono/utils/cookie writes these but does not parse them. */
function parseSetCookies(lines: string | undefined) {
  return (lines ?? "")
    .split("\n")
    .filter((line) => line.includes("="))
    .map((line) => {
      const [pair = "", ...attributes] = line.split(";");
      const [name, value] = splitAt(pair.trim(), "=");
      const byName = new Map(
        attributes.map((attribute) => {
          const [key, text] = splitAt(attribute.trim(), "=");
          return [key.toLowerCase(), text];
        }),
      );
      const expiresAtMs = Date.parse(byName.get("expires") ?? "");
      const [path, domain] = [byName.get("path"), byName.get("domain")];
      return {
        name,
        value,
        ...(path === undefined ? {} : { path }),
        ...(domain === undefined ? {} : { domain }),
        ...(Number.isNaN(expiresAtMs) ? {} : { expires: new Date(expiresAtMs).toISOString() }),
        httpOnly: byName.has("httponly"),
        secure: byName.has("secure"),
      };
    });
}

function splitAt(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + separator.length)];
}

function describeCut(recorded: number, size: number): string {
  return `cut: the first ${recorded} of ${size} bytes`;
}

function toComment(notes: string[]): { comment?: string } {
  return notes.length === 0 ? {} : { comment: notes.join("; ") };
}
