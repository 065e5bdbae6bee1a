/** The loopback addresses that the local sockets of remote clients are bound to. */
import { createHmac, createSecretKey, randomBytes, type KeyObject } from "node:crypto";
import { getAddressGroup } from "../../shared/address-group.ts";

/** Random in each process, so that a client can't choose an address that collides with another client's. */
const SECRET = createSecretKey(randomBytes(32));

/**
 * The loopback address that stands for a remote client. WireGuard limits handshakes by source address, so clients that
 * share 127.0.0.1 would be limited together. Only Linux answers on all of 127.0.0.0/8.
 * @param address of the client, IPv4 or IPv6; the addresses of an IPv6 /64 are one client.
 * @returns an address from 127.1.0.0 to 127.254.255.255.
 */
export function toLoopbackAddress(
  address: string,
  platform: NodeJS.Platform = process.platform,
  secret: KeyObject | Uint8Array = SECRET,
): string {
  if (platform !== "linux") return "127.0.0.1";
  const hash = createHmac("sha256", secret).update(getAddressGroup(address)).digest();
  // 127.0.0.0/16 has the addresses that other programs use, and 127.255.255.255 is a broadcast address.
  return `127.${1 + (hash[0]! % 254)}.${hash[1]}.${hash[2]}`;
}
