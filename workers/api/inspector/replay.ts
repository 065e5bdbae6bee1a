/** Sends a captured request again, and compares the new response with the captured one. */
import type {
  ReplayChanges,
  ReplayOutcome,
  ReplayRefusal,
} from "../../../protocol/schemas/inspector/captures.ts";
import type { ReplayResult, ReplayRequest } from "../../../protocol/schemas/inspector/replays.ts";
import { callObject } from "../../call-object.ts";
import { ApiError } from "../../errors.ts";
import { fromBase64, toUtf8 } from "../../../shared/bytes.ts";
import { tunnelObject } from "../../objects.ts";
import { recordReplay } from "../../store/inspector/inspector.ts";
import { getMemberActor, notFound, type ApiContext } from "../route.ts";
import { compareResponses } from "./comparison.ts";
import { readCaptures, type TunnelCapture } from "./captures.ts";

export async function replay(
  c: ApiContext,
  { tunnel, capture }: TunnelCapture,
  request: ReplayRequest,
): Promise<ReplayResult> {
  if (!c.var.config.ALLOW_REPLAY) {
    throw new ApiError(
      "replay_disabled",
      "This server does not allow replays. Its operator can start it with ALLOW_REPLAY=true.",
    );
  }
  await recordReplay(c.var.db, getMemberActor(c), tunnel.id, capture.id);
  const stub = tunnelObject(c.env, tunnel.id);
  const outcome = await callObject<ReplayOutcome>(stub.replay(capture.id, toChanges(request)));
  if ("refused" in outcome) throw toApiError(outcome.refused);
  const [replayed] = await readCaptures(c, tunnel, [outcome.id]);
  if (!replayed) throw notFound("captured request");
  const comparison = await compareResponses(capture, replayed);
  return { id: replayed.id, replay_of: capture.id, comparison };
}

function toChanges(request: ReplayRequest): ReplayChanges {
  const { method, path, query, headers } = request;
  return { method, path, query, headers, body: toBody(request) };
}

function toBody({ body, body_base64: base64 }: ReplayRequest): Uint8Array | undefined {
  if (base64 !== undefined) return fromBase64(base64) ?? undefined;
  return body === undefined ? undefined : toUtf8(body);
}

function bodyNotComplete(): ApiError {
  return new ApiError(
    "conflict",
    "The captured body of this request is not complete. Send another body to replay it.",
  );
}

const LOW_DISK_RETRY_SECONDS = 60;

function toApiError(why: ReplayRefusal): ApiError {
  switch (why) {
    case "not_found":
      return notFound("captured request");
    case "replay_disabled":
      return new ApiError(
        "replay_disabled",
        "This tunnel does not allow replays. Members can allow them in its capture settings (allowReplay).",
      );
    case "cut":
      return bodyNotComplete();
    case "head_cut":
      return new ApiError(
        "conflict",
        "The headers of this request were not captured, because too many requests had large ones, or the tunnel captured too much. It cannot be replayed.",
      );
    case "not_replayable":
      return new ApiError("conflict", "A WebSocket connection cannot be replayed.");
    case "low_disk":
      return new ApiError(
        "unavailable",
        "The disk of this server is almost full, so that it can't store the result of a replay. Send it again later.",
        { retryAfterSeconds: LOW_DISK_RETRY_SECONDS },
      );
    case "agent_offline":
      return new ApiError(
        "agent_offline",
        "No agent is connected to this tunnel. Start one, then try again.",
      );
  }
}
