/** Finds reasons why others can't reach the relay's ports, or the relay can't open them, although all settings are valid. */
import { readFileSync } from "node:fs";
import { isLoopback } from "../shared/hosts.ts";
import type { LocalRelaySettings, ServerSettings } from "./settings.ts";
import { isPublicName } from "./shared-site.ts";

type PortRange = LocalRelaySettings["ports"];

/** The ports that the kernel gives to outgoing connections. */
export interface OutgoingPorts {
  range: PortRange;
  /** Ports in the range that it leaves free. */
  reserved: PortRange[];
}

/** @param outgoing null when it is not known. @returns a line for each problem. */
export function findRelayWarnings(
  { relay, serviceDomain }: Pick<ServerSettings, "relay" | "serviceDomain">,
  outgoing: OutgoingPorts | null,
): string[] {
  if (!relay) return [];
  if (isLoopback(relay.host)) {
    if (!isPublicName(serviceDomain)) return [];
    return [
      `relay: RELAY_HOST is ${relay.host}, so TCP tunnels and private networks work only on this machine; set RELAY_HOST to ` +
        "its public name and RELAY_BIND=0.0.0.0 (docs/operators/operations.md)",
    ];
  }
  if (isLoopback(relay.bind)) {
    return [
      `relay: it listens on ${relay.bind} only, so TCP tunnels and private networks work only on this machine; set ` +
        "RELAY_BIND=0.0.0.0 and open its ports (docs/operators/operations.md)",
    ];
  }
  if (!outgoing || !canBeTaken(relay.ports, outgoing)) return [];
  const ports = `${relay.ports.first}-${relay.ports.last}`;
  return [
    `relay: outgoing connections of this machine can take ports of ${ports}, which then can't be served; reserve them: ` +
      `sysctl -w net.ipv4.ip_local_reserved_ports=${ports}`,
  ];
}

function canBeTaken({ first, last }: PortRange, { range, reserved }: OutgoingPorts): boolean {
  for (let port = Math.max(first, range.first); port <= Math.min(last, range.last); port += 1) {
    if (!reserved.some((ports) => port >= ports.first && port <= ports.last)) return true;
  }
  return false;
}

/** @returns null on a system without these settings. */
export function readOutgoingPorts(directory = "/proc/sys/net/ipv4"): OutgoingPorts | null {
  try {
    const [first = 0, last = 0] = readFileSync(`${directory}/ip_local_port_range`, "utf8")
      .trim()
      .split(/\s+/)
      .map(Number);
    const reserved = readFileSync(`${directory}/ip_local_reserved_ports`, "utf8").trim();
    return { range: { first, last }, reserved: parseRanges(reserved) };
  } catch {
    return null;
  }
}

/** @param text such as `40000-40999,50000`. */
function parseRanges(text: string): PortRange[] {
  if (text === "") return [];
  return text.split(",").map((part) => {
    const [first = 0, last = first] = part.split("-").map(Number);
    return { first, last };
  });
}
