/** Groups addresses that count as one source: an IPv6 subscriber has a whole /64 to send from. */
import { unmapIpv4Address } from "./hosts.ts";

/** @param address without port and brackets; all sources with an empty address share one group. */
export function getAddressGroup(address: string): string {
  const plain = unmapIpv4Address(address.toLowerCase().split("%")[0]!);
  if (!plain.includes(":")) return plain === "" ? "unknown" : plain;
  return `${expandGroups(plain).slice(0, 4).join(":")}::/64`;
}

/** Splits an IPv6 address into its eight groups, with the ones that `::` stands for and without leading zeros. */
function expandGroups(address: string): string[] {
  const [head = "", tail] = address.split("::");
  const splitGroups = (part: string) => (part === "" ? [] : part.split(":"));
  const before = splitGroups(head);
  const after = tail === undefined ? [] : splitGroups(tail);
  // A dotted tail (`::1.2.3.4`) stands for two groups.
  const written = before.length + after.length + (address.includes(".") ? 1 : 0);
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - written);
  const groups = [...before, ...Array.from({ length: zeros }, () => "0"), ...after];
  return groups.map((group) => group.replace(/^0+(?=.)/, ""));
}
