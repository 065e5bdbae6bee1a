/** The tunnels of the organization. */
import { queryOptions, useQuery, type UseQueryResult } from "@tanstack/react-query";
import type { Tunnel } from "../../protocol/schemas/tunnels/tunnels.ts";
import { call } from "./session.ts";

/** How often the state of the tunnels is loaded while a page shows it. */
const TUNNELS_RELOAD_MS = 3_000;

export const tunnelsQuery = queryOptions({
  queryKey: ["tunnels"],
  queryFn: ({ signal }) => call<Tunnel[]>("GET", "/tunnels", undefined, signal),
  refetchInterval: TUNNELS_RELOAD_MS,
});

/** undefined when the organization has no tunnel with this id. */
export function useTunnel(id: string): UseQueryResult<Tunnel | undefined> {
  return useQuery({
    ...tunnelsQuery,
    select: (tunnels) => tunnels.find((tunnel) => tunnel.id === id),
  });
}
