/** Stops and starts a tunnel. The message about either has a button that undoes it. */
import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { call } from "../../api/session.ts";
import { tunnelsQuery, updateCachedTunnel } from "../../api/tunnels.ts";
import { notify, notifyOfError } from "../../ui/feedback/notifications.tsx";

export interface TunnelControls {
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

async function setStopped(queries: QueryClient, id: string, isStopped: boolean): Promise<void> {
  await updateCachedTunnel(
    queries,
    id,
    isStopped
      ? { status: "offline", stoppedAt: new Date().toISOString(), agentConnected: false }
      : { status: "active", stoppedAt: null },
  );
  try {
    await call("POST", `/tunnels/${id}/${isStopped ? "stop" : "start"}`);
  } finally {
    await queries.invalidateQueries(tunnelsQuery);
  }
}
