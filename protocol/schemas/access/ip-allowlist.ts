/** The addresses that a tunnel's visitors may come from. */
import { z } from "zod";
import { parseCidr } from "../../../shared/cidr.ts";

export const ALLOWED_CIDRS_MAX = 100;

const IPV4 = z.core.regexes.ipv4.source.slice(1, -1);
const IPV6 = z.core.regexes.ipv6.source.slice(1, -1);
const CIDR_PATTERN = String.raw`^\s*(?:${IPV4}(?:/(?:[0-9]|[12][0-9]|3[0-2]))?|(?:${IPV6}|::ffff:${IPV4})(?:/(?:[0-9]|[1-9][0-9]|1[01][0-9]|12[0-8]))?)\s*$`;

/** In canonical form: the network's own address and its prefix. */
const AllowedCidr = z
  .string()
  .max(64)
  .transform((text, context) => {
    const cidr = parseCidr(text);
    if (cidr) return cidr.text;
    context.addIssue("must be an address block such as 203.0.113.0/24 or 2001:db8::/32");
    return z.NEVER;
  })
  .meta({ pattern: CIDR_PATTERN });

export const AllowedCidrs = z
  .array(AllowedCidr)
  .min(1)
  .max(ALLOWED_CIDRS_MAX)
  .transform((cidrs) => [...new Set(cidrs)]);

export const SetIpAllowlist = z.object({ cidrs: AllowedCidrs });

/** `cidrs` is null where visitors may come from anywhere. */
export const IpAllowlist = z.object({ id: z.uuid(), cidrs: z.array(z.string()).nullable() });
