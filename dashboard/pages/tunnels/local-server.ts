/** The local server behind a tunnel. */
import { useQuery } from "@tanstack/react-query";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { tunnelAgentsQuery } from "../../api/connections.ts";

/** @returns its addresses as the connected agents print them: several of a pool, or none when they are unknown. */
export function useLocalServers(tunnel: Tunnel): string[] {
  const { data = [] } = useQuery({
    ...tunnelAgentsQuery(tunnel.id),
    enabled: tunnel.agentConnected,
  });
  // The data of a disabled query stays: the agents that were connected last.
  const agents = tunnel.agentConnected ? data : [];
  const addresses = new Set(agents.flatMap(({ local }) => local ?? []));
  return [...addresses];
}
