/** The tab with the traffic policy of a tunnel. */
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";

export interface PolicyTabProps {
  tunnel: Tunnel;
}

export function PolicyTab(_props: PolicyTabProps) {
  return null;
}
