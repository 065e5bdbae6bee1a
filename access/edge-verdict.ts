/** The header in which the edge sends its verdict on a visitor's request to the tunnel's object. */
import { equalInConstantTime } from "../shared/constant-time.ts";
import type { Gates } from "./gates.ts";
import type { Refusal } from "./refusal.ts";

/**
 * In a request from the edge: the gates tag of the gates that it authorized by and, if it refuses the request,
 * the refusal. Visitors can send this header, but they cannot know the tag.
 */
export const EDGE_VERDICT_HEADER = "underpass-judged";

export function formatEdgeVerdict({ gatesTag }: Gates, refusal: Refusal | null): string {
  return refusal === null ? gatesTag : `${gatesTag} ${JSON.stringify(refusal)}`;
}

/** @returns null when the edge admitted the request, undefined when it did not authorize by these gates. */
export function parseEdgeVerdict(
  edgeVerdict: string | null,
  gates: Gates,
): Refusal | null | undefined {
  if (edgeVerdict === null || !hasGatesTag(edgeVerdict, gates)) return undefined;
  const refusal = edgeVerdict.slice(gates.gatesTag.length);
  return refusal === "" ? null : (JSON.parse(refusal) as Refusal);
}

/** Whether the edge authorized by these gates. */
export function hasGatesTag(edgeVerdict: string | null, { gatesTag }: Gates): boolean {
  return (
    edgeVerdict !== null && equalInConstantTime(edgeVerdict.slice(0, gatesTag.length), gatesTag)
  );
}
