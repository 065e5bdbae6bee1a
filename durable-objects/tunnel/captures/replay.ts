/** Sends a captured request again. */
import { joinTarget } from "../../../protocol/request-target.ts";
import { FLAG } from "../../../protocol/wire/frames.ts";
import {
  REDACTED,
  REPLAY_HEADER,
  type ReplayChanges,
  type ReplayRefusal,
} from "../../../protocol/schemas/inspector/captures.ts";
import type { RequestHead } from "../proxy/heads.ts";
import type { Capture } from "./record.ts";
import { countChars, headerPairs } from "../../../shared/raw-headers.ts";

/** A replay that has not ended after this time is aborted. */
const REPLAY_MAX_MS = 30_000;

export interface Replay {
  head: RequestHead;
  body: Uint8Array;
}

/** Redacted headers are left out: their values are not stored. */
export function buildReplay(capture: Capture, changes: ReplayChanges): Replay | ReplayRefusal {
  const { record, lines, bodies } = capture;
  if (record.kind === "websocket") return "not_replayable";
  if (record.isRequestHeadCut) return "head_cut";
  if (changes.body === undefined && bodies.request.isCut) return "cut";
  const body = changes.body ?? bodies.request.bytes;
  const method = changes.method ?? record.method;
  const path = changes.path ?? record.path;
  const query = changes.query === undefined ? record.query : changes.query;
  const replaced = new Map(Object.entries(changes.headers ?? {}).map(toLowerCaseName));
  const parts = [method, joinTarget(path, query)];
  let hasContentLength = changes.body !== undefined;
  for (const [name, value] of headerPairs(lines.request)) {
    if (name === "content-length") hasContentLength = true;
    else if (name !== REPLAY_HEADER && value !== REDACTED && !replaced.has(name)) {
      parts.push(name, value);
    }
  }
  for (const [name, value] of replaced) if (value !== null) parts.push(name, value);
  if (hasContentLength) parts.push("content-length", String(body.byteLength));
  parts.push(REPLAY_HEADER, record.id);
  const flags = body.byteLength === 0 ? FLAG.end : 0;
  return {
    head: {
      parts,
      chars: countChars(parts),
      flags,
      isWebSocket: false,
      isHeadMethod: method === "HEAD",
      edgeVerdict: null,
      hasAccessToken: false,
    },
    body,
  };
}

/** Reads a response to its end like a visitor, for at most `REPLAY_MAX_MS`. */
export async function consumeResponse(
  response: Promise<Response>,
  abort: AbortController,
): Promise<void> {
  const timer = setTimeout(() => abort.abort(), REPLAY_MAX_MS);
  try {
    const { body } = await response;
    await body?.pipeTo(new WritableStream(), { signal: abort.signal });
  } catch {
    // The response broke off or was aborted. The received part is recorded.
  } finally {
    clearTimeout(timer);
  }
}

function toLowerCaseName([name, value]: [string, string | null]): [string, string | null] {
  return [name.toLowerCase(), value];
}
