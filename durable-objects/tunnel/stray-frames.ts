/** Frames that change nothing, of which the other end may send only so many. */
import { FLAG, FRAME, type Frame } from "../../protocol/wire/frames.ts";
import { isRecent, SECOND_MS } from "../../shared/time.ts";

/**
 * Of one connection: frames that were in flight when their stream ended, and empty parts of a body or a message. A program that
 * follows the protocol stops sending the former when it reads the reset.
 */
export const STRAY_FRAMES_PER_SECOND_MAX = 50_000;

export class StrayFrames {
  #frames = 0;
  #sinceMs = 0;

  /** @param cost as many frames as it counts. @returns false when there are too many. */
  count(nowMs: number, cost = 1): boolean {
    if (!isRecent(this.#sinceMs, SECOND_MS, nowMs)) {
      this.#frames = 0;
      this.#sinceMs = nowMs;
    }
    this.#frames += cost;
    return this.#frames <= STRAY_FRAMES_PER_SECOND_MAX;
  }
}

/** Whether the frame needs no credit, and more of the same body or message follows. */
export function isEmptyPart({ type, flags, payload }: Frame): boolean {
  if (payload.byteLength > 0) return false;
  if (type === FRAME.data) return (flags & FLAG.end) === 0;
  const isMessage = type === FRAME.text || type === FRAME.binary;
  return isMessage && (flags & FLAG.more) !== 0;
}
