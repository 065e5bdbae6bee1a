/** Accepts the connection of an agent that the API has admitted. */
import type { TunnelParts } from "../parts.ts";
import { answerUpgrade } from "../../websockets.ts";
import { ADMISSION_HEADER, AgentAdmission } from "../admission.ts";

/** @param isFirst whether this is the tunnel's first object, which alone asks whether the tunnel has expired. */
export function acceptAgent(
  request: Request,
  { agents, captures, lifetime, relay: relaySender, reports }: TunnelParts,
  isFirst: boolean,
): Response {
  const admission = AgentAdmission.parse(JSON.parse(request.headers.get(ADMISSION_HEADER) ?? ""));
  reports.setTunnelId(admission.tunnelId);
  const { retention, endsAtMs, relay } = admission;
  if (retention) captures.setRetention(retention.version, retention.days);
  if (endsAtMs !== null && isFirst) lifetime.scheduleExpiry(endsAtMs);
  if (relay !== undefined) relaySender.setPort(relay);
  const { 0: client, 1: server } = new WebSocketPair();
  agents.accept(server, admission);
  return answerUpgrade(request, client);
}
