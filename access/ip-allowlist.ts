/** The IP allowlist of a tunnel. */
import { createCidrMatcher } from "../shared/cidr.ts";

export const ADDRESS_REFUSED_MESSAGE = "This tunnel does not accept visitors from your network.";

/** Keyed by the list itself: settings are replaced as a whole, and an unreferenced list is collected. */
const matchers = new WeakMap<readonly string[], (address: string) => boolean>();

export function isAllowedAddress(cidrs: readonly string[], address: string): boolean {
  let matches = matchers.get(cidrs);
  if (!matches) {
    matches = createCidrMatcher(cidrs);
    matchers.set(cidrs, matches);
  }
  return matches(address);
}
