/** The gate of a tunnel's IP allowlist. */
import { compileCidrs } from "../shared/cidr.ts";

export const ADDRESS_REFUSED = "This tunnel does not take visitors from your network.";

/** By the list itself: settings are replaced as a whole, and what nobody holds any longer is collected. */
const compiled = new WeakMap<readonly string[], (address: string) => boolean>();

export function isAllowedAddress(cidrs: readonly string[], address: string): boolean {
  let isIn = compiled.get(cidrs);
  if (!isIn) {
    isIn = compileCidrs(cidrs);
    compiled.set(cidrs, isIn);
  }
  return isIn(address);
}
