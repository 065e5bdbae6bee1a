/** The differences between two captured requests. */
import type { CaptureDetail } from "../../../../protocol/schemas/inspector/captures.ts";
import { fromBase64 } from "../../../../shared/bytes.ts";
import { decodeContent } from "./content-encoding.ts";
import { parseJsonTree } from "./json/json.ts";
import { formatJson, sortFields } from "./json/json-format.ts";
import { parseMediaType } from "./media-type.ts";
import { decodeText, looksLikeText } from "./text.ts";

/** Only this much of a longer text is compared. */
const COMPARED_MAX_CHARS = 512 * 1024;

/** A value that differs between two requests; null where a request does not have it. */
export interface ValueChange {
  name: string;
  before: string | null;
  after: string | null;
}

interface RequestChanges {
  /** Method, path and query. */
  line: ValueChange[];
  /** null when the headers of one of them were not stored. */
  requestHeaders: ValueChange[] | null;
  /** Status, state and error. */
  outcome: ValueChange[];
  /** null when the headers of one of them were not stored. */
  responseHeaders: ValueChange[] | null;
}

export function compareRequests(before: CaptureDetail, after: CaptureDetail): RequestChanges {
  return {
    line: compareValues(readLine(before), readLine(after)),
    requestHeaders: compareHeaders(before, after, "request"),
    outcome: compareValues(readOutcome(before), readOutcome(after)),
    responseHeaders: compareHeaders(before, after, "response"),
  };
}

function readLine({ method, path, query }: CaptureDetail): Record<string, string> {
  return { Method: method, Path: path, ...(query !== null && { Query: query }) };
}

function readOutcome({ status, state, error }: CaptureDetail): Record<string, string> {
  return {
    ...(status !== null && { Status: String(status) }),
    State: state,
    ...(error !== null && { Error: error }),
  };
}

function compareHeaders(
  before: CaptureDetail,
  after: CaptureDetail,
  side: "request" | "response",
): ValueChange[] | null {
  if ([before, after].some(({ truncated }) => truncated[`${side}_head`])) return null;
  return compareValues(before[`${side}_headers`], after[`${side}_headers`]);
}

function compareValues(
  before: Record<string, string>,
  after: Record<string, string>,
): ValueChange[] {
  const [old, now] = [new Map(Object.entries(before)), new Map(Object.entries(after))];
  const names = new Set([...old.keys(), ...now.keys()]);
  return [...names]
    .map((name) => ({ name, before: old.get(name) ?? null, after: now.get(name) ?? null }))
    .filter((change) => change.before !== change.after);
}

/** A body in the form in which two bodies are compared. */
export interface ComparableBody {
  /** After decompression. */
  bytes: Uint8Array;
  /** JSON with sorted fields, or the text as it was sent; null for bytes that are not text. */
  text: string | null;
  /** Whether a part of the body is missing. */
  isCut: boolean;
}

export async function readComparableBody(
  request: CaptureDetail,
  side: "request" | "response",
): Promise<ComparableBody> {
  const headers = request[`${side}_headers`];
  const stored = fromBase64(request[`${side}_body`]) ?? new Uint8Array();
  const { bytes, problem } = await decodeContent(stored, headers["content-encoding"]);
  const charset = parseMediaType(headers["content-type"]).parameters.get("charset");
  const isText = problem?.kind !== "unsupported" && looksLikeText(bytes);
  const text = isText ? formatComparable(decodeText(bytes, charset).text) : null;
  const isTooLong = (text?.length ?? 0) > COMPARED_MAX_CHARS;
  return {
    bytes,
    text: text?.slice(0, COMPARED_MAX_CHARS) ?? null,
    isCut: request.truncated[side] || problem !== null || isTooLong,
  };
}

function formatComparable(text: string): string {
  const result = parseJsonTree(text);
  if ("error" in result) return text;
  sortFields(result.value);
  return formatJson(result.value);
}

/** Whether both have the same text, or the same bytes. The order of fields and the spaces of JSON don't count. */
export function areBodiesEqual(one: ComparableBody, other: ComparableBody): boolean {
  if (one.text !== null && other.text !== null) return one.text === other.text;
  const { bytes } = other;
  return one.bytes.length === bytes.length && one.bytes.every((byte, at) => byte === bytes[at]);
}
