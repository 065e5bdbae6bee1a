/** The filter of the list of tunnels. Its values are in the URL. */
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { getTunnelState } from "../../../api/tunnels.ts";

export interface TunnelFilter {
  /** A part of the name, the address, a custom domain or the id. */
  text?: string | undefined;
  state?: string | undefined;
  project?: string | undefined;
}

export function matchesFilter(tunnel: Tunnel, { text = "", state, project }: TunnelFilter) {
  if (state !== undefined && getTunnelState(tunnel) !== state) return false;
  if (project !== undefined && tunnel.projectSlug !== project) return false;
  const words = text.toLowerCase().split(/\s+/);
  const searched = [tunnel.name, tunnel.publicUrl, tunnel.id, ...tunnel.customDomains]
    .join("\n")
    .toLowerCase();
  return words.every((word) => searched.includes(word));
}
