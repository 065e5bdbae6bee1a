/** A captured request as it is sent once more. */
import { FLAG } from "../../../protocol/wire/frames.ts";
import {
  REDACTED,
  REPLAY_HEADER,
  type ReplayChanges,
  type ReplayRefusal,
} from "../../../protocol/schemas/inspector/captures.ts";
import type { RequestHead } from "../proxy/heads.ts";
import type { Capture } from "./record.ts";

/** How long a replay is waited for; what has not ended by then is given up. */
const REPLAY_MAX_MS = 30_000;

export interface Replay {
  head: RequestHead;
  body: Uint8Array;
}

/** What was redacted is not known any longer: such lines are left out. */
export function buildReplay(capture: Capture, changes: ReplayChanges): Replay | ReplayRefusal {
  const { record, lines, bodies } = capture;
  if (record.kind === "websocket") return "not_replayable";
  if (changes.body === undefined && bodies.request.isCut) return "cut";
  const body = changes.body ?? bodies.request.bytes;
  const method = changes.method ?? record.method;
  const path = changes.path ?? record.path;
  const query = changes.query === undefined ? record.query : changes.query;
  const set = new Map(Object.entries(changes.headers ?? {}).map(toLowerCaseName));
  const parts = [method, query === null ? path : `${path}?${query}`];
  let announcesLength = changes.body !== undefined;
  for (let i = 0; i < lines.request.length; i += 2) {
    const name = lines.request[i]!;
    const value = lines.request[i + 1]!;
    if (name === "content-length") announcesLength = true;
    else if (name !== REPLAY_HEADER && value !== REDACTED && !set.has(name)) {
      parts.push(name, value);
    }
  }
  for (const [name, value] of set) if (value !== null) parts.push(name, value);
  if (announcesLength) parts.push("content-length", String(body.byteLength));
  parts.push(REPLAY_HEADER, record.id);
  const flags = body.byteLength === 0 ? FLAG.end : 0;
  return { head: { parts, flags, isSocket: false, isHead: method === "HEAD", edgeVerdict: null }, body };
}

/** Takes an answer as a visitor would, for as long as a replay is waited for. */
export async function consumeResponse(
  answer: Promise<Response>,
  giveUp: AbortController,
): Promise<void> {
  const timer = setTimeout(() => giveUp.abort(), REPLAY_MAX_MS);
  try {
    const { body } = await answer;
    await body?.pipeTo(new WritableStream(), { signal: giveUp.signal });
  } catch {
    // Cut off, or given up: what there is of it is recorded.
  } finally {
    clearTimeout(timer);
  }
}

function toLowerCaseName([name, value]: [string, string | null]): [string, string | null] {
  return [name.toLowerCase(), value];
}
