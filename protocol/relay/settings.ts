/** Settings of the relay, which `npm start` also checks before it starts its own relay. */
import { z } from "zod";

/** A DNS name or an IP address, IPv6 without brackets. */
export const RelayHost = z.union(
  [
    z.ipv4(),
    z.ipv6(),
    z
      .string()
      .regex(
        /^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$/,
      ),
  ],
  { error: "must be a host name or an IP address" },
);

/** The URL that agents connect to: `ws://…` or `wss://…`, when a proxy is in front of the relay. It may have a path. */
export const RelayUrl = z
  .url({ protocol: /^wss?$/, error: "must be a URL that starts with ws:// or wss://" })
  .transform((url) => url.replace(/\/+$/, ""));

/** `first-last`: the first port is the relay's own, so the range has at least two. */
export const RelayPortRange = z
  .string()
  .regex(/^\d{1,5}-\d{1,5}$/, "must be a range of ports such as 40000-40999")
  .transform((text) => {
    const [first = 0, last = 0] = text.split("-").map(Number);
    return { first, last };
  })
  .refine(
    ({ first, last }) => first >= 1 && first < last && last <= 65_535,
    "must be two different ports from 1 to 65535, the lower first",
  );
export type RelayPortRange = z.output<typeof RelayPortRange>;

export const RELAY_PORT_RANGE_DEFAULT = "40000-40999";
/** For `RELAY_SECRET`. */
export const RELAY_SECRET_MIN_CHARS = 32;
