/** The phases of an exchange: how far the response to a visitor's request has come. */
import { FRAME_DATA_MAX_BYTES } from "../../../protocol/limits.ts";
import type { ResponseBody } from "./response-body.ts";

/** A complete body of more than this is written as a stream, to learn when the visitor's connection has taken it. */
const WHOLE_BODY_MAX_BYTES = FRAME_DATA_MAX_BYTES;

export type Phase = WaitingPhase | HeldResponse | StreamingPhase | DiscardingPhase | DonePhase;

/** The agent has not responded. */
interface WaitingPhase {
  kind: "waiting";
}

/** The agent's head has arrived. The visitor gets the response when the pacer allows it. */
export interface HeldResponse {
  kind: "held";
  status: number;
  pairs: string[];
  /** The body so far. */
  chunks: Uint8Array[];
  bytes: number;
  /** Whether more of the body will arrive. */
  end: "open" | End;
}

/** The visitor has the head, and gets the body as it arrives. */
interface StreamingPhase {
  kind: "streaming";
  body: ResponseBody;
}

/** The visitor has a response without a body. If the agent sends one, it is dropped, up to a bound. */
interface DiscardingPhase {
  kind: "discarding";
  /** The bytes that were dropped. */
  bytes: number;
}

/** The exchange is settled, and nothing more is sent or received. */
interface DonePhase {
  kind: "done";
  end: End;
}

/** Whether the agent sent the whole response. */
export type End = "complete" | "cut";

export const WAITING: WaitingPhase = { kind: "waiting" };
export const DONE: Record<End, DonePhase> = {
  complete: { kind: "done", end: "complete" },
  cut: { kind: "done", end: "cut" },
};

/** Whether the response can be given to the platform at once. */
export function isWhole({ end, bytes }: HeldResponse): boolean {
  return end === "complete" && bytes <= WHOLE_BODY_MAX_BYTES;
}
