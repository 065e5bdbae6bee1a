/** The agents that are connected now. */
import { queryOptions } from "@tanstack/react-query";
import type { Connection, TunnelAgent } from "../../protocol/schemas/tunnels/connections.ts";
import { call } from "./session.ts";

const CONNECTIONS_RELOAD_MS = 3_000;

export const connectionsQuery = queryOptions({
  queryKey: ["connections"],
  queryFn: ({ signal }) => call<Connection[]>("GET", "/connections", undefined, signal),
  refetchInterval: CONNECTIONS_RELOAD_MS,
});

/** The agents of one tunnel, each with the number of its requests in flight. */
export const tunnelAgentsQuery = (id: string) =>
  queryOptions({
    queryKey: ["connections", id],
    queryFn: ({ signal }) => call<TunnelAgent[]>("GET", `/tunnels/${id}/agents`, undefined, signal),
    refetchInterval: CONNECTIONS_RELOAD_MS,
  });
