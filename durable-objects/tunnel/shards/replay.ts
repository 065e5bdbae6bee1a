/** Replays a captured request at the object of the tunnel that has captured it. */
import type { ReplayChanges, ReplayOutcome } from "../../../protocol/schemas/inspector/captures.ts";
import type { TunnelParts } from "../parts.ts";
import type { Shards } from "./shards.ts";

interface ReplayTarget {
  replay(id: string, changes: ReplayChanges): Promise<ReplayOutcome>;
}

/** The first object asks the others for a capture that it does not have. Resolves when the response has ended. */
export async function replay(
  { captures, visitors }: Pick<TunnelParts, "captures" | "visitors">,
  shards: Pick<Shards<ReplayTarget>, "forOthers">,
  id: string,
  changes: ReplayChanges,
): Promise<ReplayOutcome> {
  if (captures.find(id)) return visitors.replay(id, changes);
  const outcomes = await shards.forOthers((it) => it.replay(id, changes));
  const found = outcomes.find((it) => !("refused" in it) || it.refused !== "not_found");
  return found ?? visitors.replay(id, changes);
}
