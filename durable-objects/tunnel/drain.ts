/** A restart of the server, for one of a tunnel's objects. */
import type { TunnelParts } from "./parts.ts";

const REASON = "the server is restarting";

/**
 * Requests in flight may finish. When this returns, captures and counters are stored.
 * @param drainOthers does the same at the tunnel's other objects, meanwhile.
 */
export async function drain(
  { agents, alarm, captures, clients, lastAgent, reports, visitors }: TunnelParts,
  drainOthers: () => Promise<unknown>,
): Promise<void> {
  const startedAtMs = Date.now();
  visitors.releaseParked();
  agents.sendGoingAway(REASON);
  const others = drainOthers();
  await visitors.waitUntilIdle();
  clients.disconnectAll("going_away", REASON);
  // Before their agents, whose end would be the reason that the visitors get.
  visitors.sockets.closeAll(REASON);
  agents.disconnectAll("going_away", REASON);
  lastAgent.recordServerStop(startedAtMs);
  captures.flush();
  await others;
  await alarm.attempt(async () => void (await reports.send()));
}
