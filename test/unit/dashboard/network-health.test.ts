import { expect, test } from "vitest";
import {
  findNetworkProblems,
  getDeviceHealth,
  getNetworkHealth,
} from "../../../dashboard/pages/networks/network-health.ts";
import type { Device, PrivateNetwork } from "../../../protocol/schemas/networks.ts";

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

test("without the relay, nothing is known about the handshakes of a device", () => {
  const device: Device = {
    id: "018f0000-0000-7000-8000-000000000002",
    name: "laptop",
    public_key: "laptop",
    assigned_ip: "10.88.0.2",
    last_handshake_at: null,
    rx_bytes: null,
    tx_bytes: null,
    endpoint: null,
    created_at: "2026-01-01T00:00:00.000Z",
  };
  const direct = { ...NETWORK, public_endpoint: "vpn.example.com:51820" };
  expect(getDeviceHealth(direct, device, 0)).toEqual({ tone: "neutral", label: "not known" });
  expect(getDeviceHealth(NETWORK, device, 0)).toMatchObject({ label: "no handshake yet" });
});
