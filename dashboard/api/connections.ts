/** The agents that are connected now. */
import { queryOptions } from "@tanstack/react-query";
import type { Connection } from "../../protocol/schemas/tunnels/connections.ts";
import { call } from "./session.ts";

const CONNECTIONS_RELOAD_MS = 3_000;

export const connectionsQuery = queryOptions({
  queryKey: ["connections"],
  queryFn: ({ signal }) => call<Connection[]>("GET", "/connections", undefined, signal),
  refetchInterval: CONNECTIONS_RELOAD_MS,
});
