import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { RelativeTime } from "../../ui/time.tsx";

/** When an agent was last connected. */
export function LastSeen({ tunnel: { agentConnected, lastSeenAt } }: { tunnel: Tunnel }) {
  if (agentConnected) return "now";
  return lastSeenAt === null ? "never" : <RelativeTime timestamp={lastSeenAt} />;
}
