/** The changes that a user made to a request before it is sent again. */
import { isSettableByPolicy } from "../../../../../protocol/header-names.ts";
import type { CaptureDetail } from "../../../../../protocol/schemas/inspector/captures.ts";
import type { ReplayRequest } from "../../../../../protocol/schemas/inspector/replays.ts";
import { fromBase64 } from "../../../../../shared/bytes.ts";
import { RequestError } from "../../../../api/request.ts";
import { isRedacted } from "../../decode/redacted.ts";

export type BodyFormat = "text" | "base64";

/** A request as text fields. */
interface EditedRequest {
  method: string;
  path: string;
  query: string;
  /** One `name: value` per line. */
  headers: string;
  body: string;
  format: BodyFormat;
}

export function toEditedRequest(request: CaptureDetail): EditedRequest {
  const headers = listSettableHeaders(request).map(([name, value]) => `${name}: ${value}`);
  const text = readText(request);
  return {
    method: request.method,
    path: request.path,
    query: request.query ?? "",
    headers: headers.join("\n"),
    body: text ?? request.request_body,
    format: text === null ? "base64" : "text",
  };
}

/** Others are made anew for each request. A redacted value is not known, so it is not sent. */
function listSettableHeaders({ request_headers: headers }: CaptureDetail): [string, string][] {
  return Object.entries(headers).filter(
    ([name, value]) => isSettableByPolicy(name) && !isRedacted(value),
  );
}

/** @returns null when the body is not text as it was sent. */
function readText({
  request_body: base64,
  request_headers: headers,
}: CaptureDetail): string | null {
  if (headers["content-encoding"] !== undefined) return null;
  try {
    const bytes = fromBase64(base64) ?? new Uint8Array();
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** RFC 9110: a method, or the name of a header. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/**
 * The differences from the captured request. Fields without a change are left out.
 * @throws RequestError when a field is not valid.
 */
export function toReplayRequest(request: CaptureDetail, edited: EditedRequest): ReplayRequest {
  requireField(TOKEN.test(edited.method), "method", "Enter an HTTP method, such as POST.");
  const original = toEditedRequest(request);
  const changes: ReplayRequest = {};
  if (edited.method !== original.method) changes.method = edited.method;
  if (edited.path !== original.path) changes.path = edited.path;
  if (edited.query !== original.query) changes.query = edited.query === "" ? null : edited.query;
  const headers = findHeaderChanges(request, edited.headers);
  if (Object.keys(headers).length > 0) changes.headers = headers;
  // A text area has line feeds only.
  const isSameBody = edited.body === original.body.replaceAll(/\r\n?/g, "\n");
  if (edited.format !== original.format || !isSameBody) {
    if (edited.format === "text") changes.body = edited.body;
    else changes.body_base64 = edited.body.replaceAll(/\s/g, "");
  }
  return changes;
}

function findHeaderChanges(request: CaptureDetail, text: string): Record<string, string | null> {
  const before = new Map(listSettableHeaders(request));
  const after = parseHeaders(text);
  const changes = new Map<string, string | null>();
  for (const name of before.keys()) if (!after.has(name)) changes.set(name, null);
  for (const [name, value] of after) if (before.get(name) !== value) changes.set(name, value);
  return Object.fromEntries(changes);
}

function requireField(isValid: boolean, path: string, message: string): void {
  if (!isValid)
    throw new RequestError(
      { error: "invalid_request", message, fields: [{ path, message }] },
      null,
    );
}

/** Lines with the same name are joined, as in the capture. */
function parseHeaders(text: string): Map<string, string> {
  const headers = new Map<string, string>();
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const colon = line.indexOf(":");
    const requireLine = (isValid: boolean, problem: string) =>
      requireField(isValid, "headers", `Line ${index + 1} ${problem}.`);
    requireLine(colon >= 0, "has no colon");
    const name = line.slice(0, colon).trim().toLowerCase();
    requireLine(TOKEN.test(name), "has no valid name before the colon");
    requireLine(isSettableByPolicy(name), `sets ${name}, which is generated`);
    const value = line.slice(colon + 1).trim();
    const previous = headers.get(name);
    headers.set(name, previous === undefined ? value : `${previous}, ${value}`);
  }
  return headers;
}
