/** The configurations of devices, in the format of wg-quick(8). */
import { queryOptions } from "@tanstack/react-query";
import type { NetworkConfig } from "../../../../protocol/schemas/networks.ts";
import { load } from "../../../api/session.ts";

/** The API does not know private keys, so its configurations have this text in place of one. */
const PRIVATE_KEY_PLACEHOLDER = "<PASTE_CLIENT_PRIVATE_KEY>";

/** `wg-quick` names the interface after the file, and Linux limits the length of that name. */
const INTERFACE_NAME_MAX_CHARS = 15;

/** The configuration of a device, with a placeholder for the private key. */
export const deviceConfigQuery = (networkId: string, deviceId: string) =>
  queryOptions({
    queryKey: ["networks", networkId, "devices", deviceId, "config"],
    queryFn: ({ signal }) => loadDeviceConfig(networkId, deviceId, signal),
  });

export async function loadDeviceConfig(
  networkId: string,
  deviceId: string,
  signal?: AbortSignal,
): Promise<string> {
  const path = `/private-networks/${networkId}/devices/${deviceId}/config`;
  return (await load<NetworkConfig>(path, signal)).config;
}

/** @returns the configuration with the private key in place of the placeholder. */
export function insertPrivateKey(config: string, privateKey: string): string {
  return config.replace(PRIVATE_KEY_PLACEHOLDER, privateKey);
}

/** The name of the interface on the device, and of its file without `.conf`. */
export function toInterfaceName(networkName: string): string {
  const name = networkName
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, INTERFACE_NAME_MAX_CHARS)
    .replaceAll(/^-|-$/g, "");
  return name === "" ? "underpass" : name;
}
