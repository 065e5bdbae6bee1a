/** Converts addresses between the forms of sockets, of text and of 16 bytes. */
import { isIPv4 } from "node:net";
import ipaddr from "ipaddr.js";

/** @returns the address in the form in which a socket of the family can send to it. */
export function toSocketAddress(address: string, isIpv6Socket: boolean): string {
  return isIpv6Socket && isIPv4(address) ? `::ffff:${address}` : address;
}

/** @returns 16 bytes, IPv4 as `::ffff:a.b.c.d`. */
export function toAddressBytes(address: string): Uint8Array {
  const parsed = ipaddr.parse(address);
  const ipv6 = parsed instanceof ipaddr.IPv4 ? parsed.toIPv4MappedAddress() : parsed;
  return Uint8Array.from(ipv6.toByteArray());
}
