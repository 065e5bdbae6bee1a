/**
 * The address that a request comes from. Only the platform's own information is trusted, and a header only where the
 * operator has configured that their own proxy sets it.
 */
import { unmapIpv4Address } from "./hosts.ts";

/**
 * The header in which the front proxy of a self-hosted server describes the connection of each request that it forwards:
 * JSON with the address of the visitor (`clientIp`). workerd reports it as `request.cf` (`cfBlobHeader`). Whatever listens
 * behind the front proxy believes it, so the front proxy removes a visitor's own header of this name.
 */
export const CF_BLOB_HEADER = "underpass-connection";

/** Which source of the address may be trusted. */
export interface AddressTrust {
  /**
   * On Cloudflare, which sets `cf-connecting-ip` itself and overwrites a visitor's. `wrangler dev` sets it too, unless the
   * visitor has sent it.
   */
  onCloudflare: boolean;
  /** Self-hosted behind a proxy: the last entry of `X-Forwarded-For` is the one that the proxy added. */
  trustProxy: boolean;
}

export interface ClientAddressSettings {
  HOSTED?: string;
  /** `npm run dev` sets it. */
  WRANGLER_DEV?: string;
  TRUST_PROXY?: string;
}

/** @param settings as they are bound to the Worker. */
export function getAddressTrust(settings: ClientAddressSettings): AddressTrust {
  return {
    onCloudflare: settings.HOSTED === "true" || settings.WRANGLER_DEV === "true",
    trustProxy: settings.TRUST_PROXY === "true",
  };
}

/** The parts of a request that can hold the address. */
interface AddressedRequest {
  headers: { get(name: string): string | null };
  /** Set by the platform. */
  cf?: unknown;
}

/** @returns an IPv4 or IPv6 address without port and brackets, and IPv4 never as IPv6; empty when it is unknown. */
export function getClientAddress(request: AddressedRequest, trust: AddressTrust): string {
  return unmapIpv4Address(findAddress(request, trust));
}

function findAddress(request: AddressedRequest, trust: AddressTrust): string {
  if (trust.onCloudflare) return request.headers.get("cf-connecting-ip") ?? "";
  if (trust.trustProxy) {
    const forwarded = request.headers.get("x-forwarded-for")?.split(",").at(-1)?.trim();
    if (forwarded) return stripPort(forwarded);
  }
  const { clientIp } = (request.cf ?? {}) as { clientIp?: string };
  return clientIp === undefined ? "" : stripPort(clientIp);
}

/** Takes `192.0.2.1:80`, `[2001:db8::1]:80`, `2001:db8::1` and `unix:…`. */
function stripPort(address: string): string {
  if (address.startsWith("[")) return address.slice(1, address.indexOf("]"));
  const colon = address.indexOf(":");
  if (colon < 0 || address.indexOf(":", colon + 1) >= 0) return address;
  return address.slice(0, colon);
}
