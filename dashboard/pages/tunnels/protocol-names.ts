import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";

/** Names of protocols for people. */
export const PROTOCOL_NAMES: Record<Tunnel["protocol"], string> = {
  http: "HTTP",
  https: "HTTPS",
  websocket: "WebSocket",
  tcp: "TCP",
};
