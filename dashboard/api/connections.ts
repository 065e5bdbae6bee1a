/** The agents that are connected now. */
import { queryOptions } from "@tanstack/react-query";
import type { Connection, TunnelAgent } from "../../protocol/schemas/tunnels/connections.ts";
import { load } from "./session.ts";

const CONNECTIONS_RELOAD_MS = 3_000;

export const connectionsQuery = queryOptions({
  queryKey: ["connections"],
  queryFn: ({ signal }) => load<Connection[]>("/connections", signal),
  refetchInterval: CONNECTIONS_RELOAD_MS,
});

/** The agents of one tunnel, each with the number of its requests in flight. */
export const tunnelAgentsQuery = (id: string) =>
  queryOptions({
    queryKey: ["connections", id],
    queryFn: ({ signal }) => load<TunnelAgent[]>(`/tunnels/${id}/agents`, signal),
    refetchInterval: CONNECTIONS_RELOAD_MS,
  });
