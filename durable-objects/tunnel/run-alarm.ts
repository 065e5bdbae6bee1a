/** The work of a tunnel's alarm: each part does what is due and schedules its next time, however long the others take. */
import type { InternalApi } from "../rpc.ts";
import type { TunnelParts } from "./parts.ts";

interface AlarmActions {
  rows: Pick<InternalApi, "expireTunnelIfDue">;
  reportPresence: () => Promise<void>;
}

export async function runAlarm(
  ctx: DurableObjectState,
  parts: TunnelParts,
  { rows, reportPresence }: AlarmActions,
): Promise<void> {
  const { alarm, captures, clients, lifetime, maintenanceEnd, relay, reports } = parts;
  alarm.markFired();
  const isReportPostponed = noticeLoss(parts);
  await alarm.attempt(() => lifetime.expireIfDue(rows, reports.tunnelId));
  await Promise.all([
    alarm.attempt(() => captures.onAlarm()),
    alarm.attempt(() => reports.onAlarm()),
    isReportPostponed || alarm.attempt(reportPresence),
    alarm.attempt(() => clients.onAlarm()),
    alarm.attempt(() => relay.flush()),
    alarm.attempt(() => maintenanceEnd.deliver()),
  ]);
  await lifetime.removeStorageIfDue(ctx, alarm);
}

/** @returns whether the object restarted and lost its agent: then the reports can wait for the agent to reconnect. */
function noticeLoss({ agents, lastAgent, reports }: TunnelParts): boolean {
  if (agents.isAnyServing(Date.now()) || !lastAgent.noticeLoss()) return false;
  reports.postponeReport();
  return true;
}
