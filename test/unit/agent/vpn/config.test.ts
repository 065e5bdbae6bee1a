/** Which configurations the agent accepts from the API. */
import { expect, test } from "vitest";
import { checkConfig } from "../../../../agent/vpn/wireguard/config.ts";
import { derivePublicKey, generatePrivateKey } from "../../../../agent/vpn/wireguard/keys.ts";
import {
  formatClientConfig,
  formatServerConfig,
} from "../../../../workers/api/networks/wireguard-configs.ts";

const publicKey = derivePublicKey(generatePrivateKey());

test.each([
  "relay.example:40001",
  "127.0.0.1:40001",
  "localhost:40001",
  "relay_1:40001",
  "[2001:db8::1]:51820",
])("those that the API writes, with the endpoint %s", (endpoint) => {
  const [cidr, device] = ["100.64.0.0/16", { name: "a phone # [Peer]", address: "100.64.3.7" }];
  const shared = { networkName: "PostUp = x", endpoint };
  for (const isRelayed of [true, false]) {
    const server = { ...shared, isRelayed, address: "100.64.0.1", prefix: 16, listenPort: 51_820 };
    const devices = [
      { ...device, publicKey },
      { ...device, publicKey },
    ];
    checkConfig(formatServerConfig({ ...server, devices }), "server", cidr);
  }
  const client = { ...shared, cidr, address: device.address, deviceName: device.name };
  const config = formatClientConfig({ ...client, serverPublicKey: publicKey });
  checkConfig(config, "device", cidr);
  expect(() => checkConfig(config, "device", "100.65.0.0/16")).toThrow("Address = 100.64.3.7/32");
});
