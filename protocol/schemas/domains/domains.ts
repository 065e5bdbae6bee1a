/** Custom domains, as the API takes and gives them. */
import { z } from "zod";
import { HOST_MAX_CHARS } from "../../limits.ts";

/** As it is typed, in any script. */
const DOMAIN_INPUT_MAX_CHARS = 1_000;

/** In any script and case; whether it can be claimed is `invalid_name`, not a matter of its shape. */
export const ClaimDomain = z.object({ domain: z.string().max(DOMAIN_INPUT_MAX_CHARS) });
export const BindDomain = z.object({ tunnel_id: z.uuid() });

export const CustomDomain = z.object({
  id: z.uuid(),
  domain: z.string(),
  verified: z.boolean(),
  /** What the TXT record at `_svc-challenge.<domain>` has to say. */
  verificationToken: z.string(),
  boundTunnelId: z.uuid().nullable(),
});
export type CustomDomain = z.infer<typeof CustomDomain>;

/** What a TLS proxy asks before it gets a certificate. */
export const AllowedQuery = z.object({
  domain: z
    .string()
    .min(1)
    .max(HOST_MAX_CHARS + 1),
});
