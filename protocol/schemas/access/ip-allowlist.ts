/** The addresses that a tunnel's visitors may come from. */
import { z } from "zod";
import { parseCidr } from "../../../shared/cidr.ts";

export const ALLOWED_CIDRS_MAX = 100;

/** In canonical form: the network's own address and its prefix. */
const AllowedCidr = z
  .string()
  .max(64)
  .transform((text, context) => {
    const cidr = parseCidr(text);
    if (cidr) return cidr.text;
    context.addIssue("must be an address block such as 203.0.113.0/24 or 2001:db8::/32");
    return z.NEVER;
  });

export const AllowedCidrs = z
  .array(AllowedCidr)
  .min(1)
  .max(ALLOWED_CIDRS_MAX)
  .transform((cidrs) => [...new Set(cidrs)]);

export const SetIpAllowlist = z.object({ cidrs: AllowedCidrs });

/** `cidrs` is null where visitors may come from anywhere. */
export const IpAllowlist = z.object({ id: z.uuid(), cidrs: z.array(z.string()).nullable() });
