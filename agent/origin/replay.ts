/** Sends a stored request to the local server again. The response goes nowhere; its report is that of any request. */
import { REPLAY_HEADER } from "../../protocol/schemas/inspector/captures.ts";
import { FLAG, FRAME } from "../../protocol/wire/frames.ts";
import { SendWindows } from "../../protocol/wire/flow-control.ts";
import { headerPairs } from "../../shared/raw-headers.ts";
import { MINUTE_MS } from "../../shared/time.ts";
import type { RequestReport } from "../library/types.ts";
import type { StreamWire } from "../tunnel/wire.ts";
import { HttpStream } from "./http-stream.ts";
import type { StoredRequest } from "./stored-requests.ts";
import type { OriginServer } from "./origin-server.ts";

/** Long, because the local server may have stopped at a breakpoint of a debugger. */
const REPLAY_MAX_MS = 15 * MINUTE_MS;
/** In place of the id that the service's own replays have: this request needs no capture. */
const REPLAY_HEADER_VALUE = "agent";
/** The wire of a replay carries one stream. */
const STREAM_ID = 1;

export interface Replay {
  report: RequestReport;
  /** Resolves when the report is final. */
  ended: Promise<void>;
  abort(): void;
}

export function startReplay(origin: OriginServer, { head, body }: StoredRequest): Replay {
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const wire: StreamWire = {
    // The response is read as fast as the local server sends it.
    windows: new SendWindows(Infinity, Infinity),
    send: () => undefined,
    finish: end,
    reset: end,
  };
  const flags = body ? 0 : FLAG.end;
  const request = { head: markAsReplay(head), flags, requestId: undefined };
  const stream = new HttpStream(origin, wire, STREAM_ID, request);
  const abort = (): void => {
    stream.abort("the replay was ended");
    end();
  };
  const timer = setTimeout(abort, REPLAY_MAX_MS);
  void ended.then(() => clearTimeout(timer));
  stream.start();
  if (body) {
    stream.receive({ type: FRAME.data, flags: FLAG.end, stream: STREAM_ID, payload: body });
  }
  return { report: stream.report, ended, abort };
}

function markAsReplay([method = "", target = "", ...lines]: readonly string[]): string[] {
  const marked = [method, target];
  for (const [name, value] of headerPairs(lines)) {
    if (name.toLowerCase() !== REPLAY_HEADER) marked.push(name, value);
  }
  return [...marked, REPLAY_HEADER, REPLAY_HEADER_VALUE];
}
