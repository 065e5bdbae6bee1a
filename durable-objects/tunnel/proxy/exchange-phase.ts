/** The phases of an exchange: how far the response to a visitor's request has come. */
import { FRAME_DATA_MAX_BYTES } from "../../../protocol/limits.ts";
import type { ResponseBody } from "./response-body.ts";

/** A complete body of more than this is written as a stream, to learn when the visitor's connection has taken it. */
const WHOLE_BODY_MAX_BYTES = FRAME_DATA_MAX_BYTES;

export type Phase = Waiting | Held | Streaming | Discarding | Done;

/** The agent has not responded. */
interface Waiting {
  kind: "waiting";
}

/** The agent's head has arrived. The visitor gets the response when the pacer allows it. */
export interface Held {
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
interface Streaming {
  kind: "streaming";
  body: ResponseBody;
}

/** The visitor has a response without a body. If the agent sends one, it is dropped. */
interface Discarding {
  kind: "discarding";
}

/** The exchange is settled, and nothing more is sent or received. */
interface Done {
  kind: "done";
  end: End;
}

/** Whether the agent sent the whole response. */
export type End = "complete" | "cut";

export const WAITING: Waiting = { kind: "waiting" };
export const DISCARDING: Discarding = { kind: "discarding" };
export const DONE: Record<End, Done> = {
  complete: { kind: "done", end: "complete" },
  cut: { kind: "done", end: "cut" },
};

/** Whether the response can be given to the platform at once. */
export function isWhole({ end, bytes }: Held): boolean {
  return end === "complete" && bytes <= WHOLE_BODY_MAX_BYTES;
}
