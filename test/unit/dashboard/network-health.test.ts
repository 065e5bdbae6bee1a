import { expect, test } from "vitest";
import {
  findNetworkProblems,
  getNetworkHealth,
} from "../../../dashboard/pages/networks/network-health.ts";
import type { PrivateNetwork } from "../../../protocol/schemas/networks.ts";

/** One of its devices uses an old configuration. */
const NETWORK: PrivateNetwork = {
  id: "018f0000-0000-7000-8000-000000000001",
  name: "office",
  cidr: "10.88.0.0/24",
  server_public_key: "server",
  public_endpoint: null,
  server_listen_port: null,
  reserved_udp_port: 40_000,
  relay_id: "relay",
  relay: {
    state: "udp",
    latency_ms: 5,
    loss: 0,
    last_seen_at: null,
    server_listening: true,
    wrong_key_handshakes: 3,
  },
  created_at: "2026-01-01T00:00:00.000Z",
};

test("a device with an old configuration does not hide that the network is slow", () => {
  const relay = { ...NETWORK.relay, state: "websocket" as const };
  const network = { ...NETWORK, relay };
  expect(findNetworkProblems(network)).toEqual(["wrong_key", "websocket"]);
  expect(getNetworkHealth(network)).toEqual({ tone: "warning", label: "online, UDP blocked" });
});

test("a device with an old configuration alone leaves the network good", () => {
  expect(getNetworkHealth(NETWORK)).toEqual({ tone: "good", label: "online" });
});
