/**
 * Whose address a request comes from. Only what the platform itself says is believed; a header is, where
 * an operator has said that a proxy of their own sets it.
 */

/** Which source of the address may be believed. */
export interface AddressTrust {
  /** On Cloudflare, where `cf-connecting-ip` is the platform's and can't be sent by a visitor. */
  hosted: boolean;
  /** Self-hosted behind a proxy: the last entry of `X-Forwarded-For` is the one that it added. */
  trustProxy: boolean;
}

/** The parts of a request that tell. */
export interface AddressedRequest {
  headers: { get(name: string): string | null };
  /** The platform's own, not a header. */
  cf?: unknown;
}

/** @returns an IPv4 or IPv6 address without port and brackets; empty when nothing tells. */
export function getClientAddress(request: AddressedRequest, trust: AddressTrust): string {
  if (trust.hosted) return request.headers.get("cf-connecting-ip") ?? "";
  if (trust.trustProxy) {
    const forwarded = request.headers.get("x-forwarded-for")?.split(",").at(-1)?.trim();
    if (forwarded) return stripPort(forwarded);
  }
  const { clientIp } = (request.cf ?? {}) as { clientIp?: string };
  return clientIp === undefined ? "" : stripPort(clientIp);
}

/** `192.0.2.1:80`, `[2001:db8::1]:80`, `2001:db8::1` and `unix:…` as they come. */
function stripPort(address: string): string {
  if (address.startsWith("[")) return address.slice(1, address.indexOf("]"));
  const colon = address.indexOf(":");
  if (colon < 0 || address.indexOf(":", colon + 1) >= 0) return address;
  return address.slice(0, colon);
}
