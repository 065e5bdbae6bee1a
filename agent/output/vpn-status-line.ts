/** One line about the path and the devices: `udp 23 ms · 0.1 % lost · 3 devices · laptop handshake 12 s ago`. */
import { formatCount } from "./format/format-count.ts";
import { formatAgo } from "./format/format-relative-time.ts";
import type { VpnSession } from "../vpn/session.ts";

export function formatStatusLine(session: VpnSession, nowMs: number): string {
  const { transport, latencyMs, loss } = session.agent.status;
  const latest = findLatestHandshake(session);
  return [
    latencyMs === null ? transport : `${transport} ${formatLatency(latencyMs)}`,
    ...(loss === null ? [] : [`${(loss * 100).toFixed(1)} % lost`]),
    formatCount(session.devices.length, "device"),
    ...(latest ? [`${latest.name} handshake ${formatAgo(nowMs - latest.atMs)}`] : []),
  ].join(" · ");
}

function formatLatency(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}

function findLatestHandshake({
  agent,
  devices,
}: VpnSession): { name: string; atMs: number } | null {
  let latest: { name: string; atMs: number } | null = null;
  for (const { name, public_key } of devices) {
    const atMs = agent.devices.findHandshakeAtMs(public_key);
    if (atMs !== undefined && atMs > (latest?.atMs ?? 0)) latest = { name, atMs };
  }
  return latest;
}
