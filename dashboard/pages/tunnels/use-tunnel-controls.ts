/** Stops and starts a tunnel. The message about either has a button that undoes it. */
import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { call } from "../../api/session.ts";
import { tunnelsQuery, updateCachedTunnel } from "../../api/tunnels.ts";
import { notify, notifyOfError } from "../../ui/feedback/notifications.tsx";

interface TunnelControls {
  stop: (tunnel: Tunnel) => Promise<void>;
  start: (tunnel: Tunnel) => Promise<void>;
}

export function useTunnelControls(): TunnelControls {
  const queries = useQueryClient();
  async function stop(tunnel: Tunnel): Promise<void> {
    await setStopped(queries, tunnel.id, true);
    const act = () => void start(tunnel).catch(notifyOfError);
    notify(`${tunnel.name} was stopped.`, { label: "Start it again", act }, tunnel.id);
  }
  async function start(tunnel: Tunnel): Promise<void> {
    await setStopped(queries, tunnel.id, false);
    const message = `${tunnel.name} was started. A running agent reconnects within seconds.`;
    const act = () => void stop(tunnel).catch(notifyOfError);
    notify(message, { label: "Stop it again", act }, tunnel.id);
  }
  return { stop, start };
}

/** The page shows the new state when the API has confirmed it. */
async function setStopped(queries: QueryClient, id: string, isStopped: boolean): Promise<void> {
  const path = `/tunnels/${id}/${isStopped ? "stop" : "start"}`;
  const { status, stoppedAt } = await call<Pick<Tunnel, "status" | "stoppedAt">>("POST", path);
  await updateCachedTunnel(queries, id, { status, stoppedAt, agentConnected: false });
  // The agent of a started tunnel may be back already.
  void queries.invalidateQueries(tunnelsQuery);
}
