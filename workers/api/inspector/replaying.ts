/** A captured request is sent once more, and what came of it is put beside what came of it then. */
import type {
  ReplayChanges,
  ReplayOutcome,
  ReplayRefusal,
} from "../../../protocol/schemas/inspector/captures.ts";
import type { ReplayResult, ReplayRequest } from "../../../protocol/schemas/inspector/replays.ts";
import { ApiError } from "../../errors.ts";
import { fromBase64, toUtf8 } from "../../../shared/bytes.ts";
import { tunnelObject } from "../../objects.ts";
import { noteReplay } from "../../store/inspector/inspector.ts";
import { actorOf, notFound, type ApiContext } from "../route.ts";
import { compareAnswers } from "./comparison.ts";
import { reached, readCapture, type Found } from "./reading.ts";

export async function replay(
  c: ApiContext,
  { tunnel, event }: Found,
  request: ReplayRequest,
): Promise<ReplayResult> {
  if (!c.var.config.ALLOW_REPLAY) throw refusal("replay_disabled");
  await noteReplay(c.var.db, actorOf(c), tunnel.id, event.id);
  const stub = tunnelObject(c.env, tunnel.id);
  const outcome = await reached<ReplayOutcome>(stub.replay(event.id, changesOf(request)));
  if ("refused" in outcome) throw refusal(outcome.refused);
  const replayed = await readCapture(c, tunnel, outcome.id);
  if (!replayed) throw notFound("such captured request any more");
  const comparison = await compareAnswers(event, replayed);
  return { id: replayed.id, replay_of: event.id, comparison };
}

function changesOf(request: ReplayRequest): ReplayChanges {
  const { method, path, query, headers } = request;
  return { method, path, query, headers, body: bodyOf(request) };
}

function bodyOf({ body, body_base64: base64 }: ReplayRequest): Uint8Array | undefined {
  if (base64 !== undefined) return fromBase64(base64) ?? undefined;
  return body === undefined ? undefined : toUtf8(body);
}

export function notWhole(): ApiError {
  return new ApiError(
    "conflict",
    "The body of this request was not kept whole. Give another one in its place.",
  );
}

function refusal(why: ReplayRefusal): ApiError {
  switch (why) {
    case "not_found":
      return notFound("such captured request");
    case "replay_disabled":
      return new ApiError("replay_disabled", "Replays are not enabled here.");
    case "cut":
      return notWhole();
    case "not_replayable":
      return new ApiError("conflict", "A WebSocket can't be sent again.");
    case "agent_offline":
      return new ApiError("agent_offline", "No agent is connected to this tunnel.");
  }
}
