/** The meaning of the states of a network and of its devices. */
import type { Device, PrivateNetwork } from "../../../protocol/schemas/networks.ts";
import type { Tone } from "../../ui/figures/tone.ts";

/** Users notice a greater share of lost datagrams than this. */
const LOSS_NOTICEABLE = 0.02;

/** WireGuard rejects the keys of a handshake after this time, so a device in use has made a newer one (REJECT_AFTER_TIME). */
const SESSION_MAX_MS = 180_000;

/** The problems of a network, in the order in which the user should solve them. */
export type NetworkProblem =
  | "no_server"
  | "offline"
  | "not_listening"
  | "wrong_key"
  | "websocket"
  | "loss";

interface Health {
  tone: Tone;
  label: string;
}

/** Whether devices reach the server at a public address of its own. The relay then knows nothing about them. */
export function isReachedDirectly(network: PrivateNetwork): boolean {
  const { public_endpoint: endpoint, reserved_udp_port: port } = network;
  return endpoint !== null && (port === null || !endpoint.endsWith(`:${port}`));
}

/** @returns the problems, the one to solve first at the beginning. */
export function findNetworkProblems(network: PrivateNetwork): NetworkProblem[] {
  const { relay } = network;
  if (network.server_public_key === null) return ["no_server"];
  if (isReachedDirectly(network)) return [];
  const problems: [problem: NetworkProblem, isPresent: boolean][] = [
    ["offline", relay.state === "offline"],
    ["not_listening", relay.server_listening === false],
    ["wrong_key", relay.wrong_key_handshakes > 0],
    ["websocket", relay.state === "websocket"],
    ["loss", (relay.loss ?? 0) > LOSS_NOTICEABLE],
  ];
  return problems.filter(([, isPresent]) => isPresent).map(([problem]) => problem);
}

export function getNetworkHealth(network: PrivateNetwork): Health {
  if (isReachedDirectly(network)) return { tone: "neutral", label: "without relay" };
  const first = findNetworkProblems(network).find((problem) => problem !== "wrong_key");
  switch (first) {
    case "no_server":
      return { tone: "neutral", label: "no server yet" };
    case "offline":
      return { tone: "bad", label: "offline" };
    case "not_listening":
      return { tone: "bad", label: "WireGuard is down" };
    case "websocket":
      return { tone: "warning", label: "online, UDP blocked" };
    case "loss":
      return { tone: "warning", label: "online, losing packets" };
    // A wrong key is the problem of one device.
    case undefined:
      return { tone: "good", label: "online" };
  }
}

/** Whether the device has made a handshake that is still valid. */
export function isConnected(device: Device, nowMs: number): boolean {
  const { last_handshake_at: at } = device;
  return at !== null && nowMs - Date.parse(at) < SESSION_MAX_MS;
}

export function getDeviceHealth(network: PrivateNetwork, device: Device, nowMs: number): Health {
  if (isReachedDirectly(network)) return { tone: "neutral", label: "not known" };
  if (isConnected(device, nowMs)) return { tone: "good", label: "connected" };
  if (device.last_handshake_at !== null) return { tone: "neutral", label: "not connected" };
  return { tone: "warning", label: "no handshake yet" };
}
