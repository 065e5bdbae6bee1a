/** IP addresses and blocks of them, IPv4 and IPv6 (RFC 4632, RFC 4291). */
import ipaddr from "ipaddr.js";

const { IPv4, IPv6, isValid, parse, parseCIDR } = ipaddr;

interface Cidr {
  /** The canonical form: the network's own address and its prefix. */
  text: string;
  prefixLength: number;
  /** null for IPv6. */
  ipv4: { first: number; size: number } | null;
}

/**
 * @returns null for text that is not a block; a bare address is a block of one address. A block of IPv4 addresses that is
 * written as IPv6 (`::ffff:192.0.2.0/120`) is an IPv4 block.
 */
export function parseCidr(text: string): Cidr | null {
  const [address = "", prefixText, ...rest] = text.trim().split("/");
  if (rest.length > 0 || !isValid(address)) return null;
  const parsed = parse(address);
  const isIpv4 = parsed instanceof IPv4;
  // ipaddr.js also accepts 10.1, 0x0a000001 and octal groups, which are more likely mistakes.
  if (isIpv4 && !/^(\d{1,3}\.){3}\d{1,3}$/.test(address)) return null;
  if (isIpv4 && address.split(".").some((part) => part.length > 1 && part.startsWith("0")))
    return null;
  if (address.includes("%")) return null;
  const maxPrefixLength = isIpv4 ? 32 : 128;
  if (prefixText !== undefined && !/^\d{1,3}$/.test(prefixText)) return null;
  const prefixLength = prefixText === undefined ? maxPrefixLength : Number(prefixText);
  if (prefixLength > maxPrefixLength) return null;
  if (isIpv4) return toIpv4Cidr(address, prefixLength);
  if (parsed.isIPv4MappedAddress() && prefixLength >= IPV4_MAPPED_PREFIX_LENGTH) {
    const ipv4Address = parsed.toIPv4Address().toString();
    return toIpv4Cidr(ipv4Address, prefixLength - IPV4_MAPPED_PREFIX_LENGTH);
  }
  const network = IPv6.networkAddressFromCIDR(`${address}/${prefixLength}`);
  return { text: `${network.toString()}/${prefixLength}`, prefixLength, ipv4: null };
}

/** All IPv4 addresses are in `::ffff:0:0/96` (RFC 4291 §2.5.5.2). */
const IPV4_MAPPED_PREFIX_LENGTH = 96;

function toIpv4Cidr(address: string, prefixLength: number): Cidr {
  const network = IPv4.networkAddressFromCIDR(`${address}/${prefixLength}`).toString();
  return {
    text: `${network}/${prefixLength}`,
    prefixLength,
    ipv4: { first: ipv4ToNumber(network), size: 2 ** (32 - prefixLength) },
  };
}

/**
 * Parses blocks once, to match many addresses.
 *
 * @returns a function that says whether an address is in one of the blocks. An IPv4-mapped IPv6 address (`::ffff:…`)
 * is matched as IPv4; text that is not an address is in no block.
 */
export function createCidrMatcher(cidrs: readonly string[]): (address: string) => boolean {
  const blocks = cidrs.map((cidr) => parseCIDR(cidr));
  return (address) => {
    if (!isValid(address)) return false;
    let parsed = parse(address);
    if (parsed instanceof IPv6 && parsed.isIPv4MappedAddress()) parsed = parsed.toIPv4Address();
    return blocks.some(
      ([network, prefix]) => network.kind() === parsed.kind() && parsed.match(network, prefix),
    );
  };
}

/** Whether an address is in one of the blocks: `createCidrMatcher` for one address. */
export function isAddressIn(address: string, cidrs: readonly string[]): boolean {
  return createCidrMatcher(cidrs)(address);
}

/** Whether a block is a part of another one, or the whole of it. */
export function isCidrIn(text: string, outer: string): boolean {
  const [cidr, bounds] = [parseCidr(text), parseCidr(outer)];
  if (!cidr || !bounds || cidr.prefixLength < bounds.prefixLength) return false;
  return isAddressIn(cidr.text.split("/", 1)[0]!, [bounds.text]);
}

function ipv4ToNumber(address: string): number {
  return address.split(".").reduce((number, part) => number * 256 + Number(part), 0);
}

export function numberToIpv4(number: number): string {
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join(".");
}
