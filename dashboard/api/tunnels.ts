/** The tunnels of the organization. */
import {
  queryOptions,
  useQuery,
  type QueryClient,
  type UseQueryResult,
} from "@tanstack/react-query";
import type { Tunnel } from "../../protocol/schemas/tunnels/tunnels.ts";
import { loadList } from "./lists.ts";

/** How often the state of the tunnels is loaded while a page shows it. */
const TUNNELS_RELOAD_MS = 3_000;

export const tunnelsQuery = queryOptions({
  queryKey: ["tunnels"],
  queryFn: ({ signal }) => loadList<Tunnel>("/tunnels", signal),
  refetchInterval: TUNNELS_RELOAD_MS,
});

/** null when the organization has no tunnel with this id. */
export function useTunnel(id: string): UseQueryResult<Tunnel | null> {
  return useQuery({
    ...tunnelsQuery,
    select: (tunnels) => tunnels.find((tunnel) => tunnel.id === id) ?? null,
  });
}

/** Shows a change that the API has confirmed before the tunnels are loaded again. */
export async function updateCachedTunnel(
  queries: QueryClient,
  id: string,
  changes: Partial<Tunnel>,
): Promise<void> {
  // A response that is on its way would bring the previous state back.
  await queries.cancelQueries(tunnelsQuery);
  queries.setQueryData(tunnelsQuery.queryKey, (tunnels) =>
    tunnels?.map((tunnel) => (tunnel.id === id ? { ...tunnel, ...changes } : tunnel)),
  );
}

/** As `underpass tunnels --state` names them, and `maintenance`. `inactive`: no agent has connected since it was started. */
export const TUNNEL_STATES = [
  "active",
  "maintenance",
  "inactive",
  "offline",
  "stopped",
  "expired",
] as const;
export type TunnelState = (typeof TUNNEL_STATES)[number];

/** The state that matters most to the owner. */
export function getTunnelState(tunnel: Tunnel): TunnelState {
  const { status, stoppedAt, maintenance, agentConnected } = tunnel;
  if (status === "expired") return "expired";
  if (status === "offline" && stoppedAt !== null) return "stopped";
  if (maintenance) return "maintenance";
  if (agentConnected) return "active";
  return status === "offline" ? "offline" : "inactive";
}
