/** Custom domains. */
import { z } from "zod";
import { HOST_MAX_CHARS } from "../../limits.ts";
import { Instant, TypedDomain, Uuid } from "../scalars.ts";

/** A domain as it was typed, in any script. */
const DOMAIN_INPUT_MAX_CHARS = 1_000;

/** In any script and case. A domain that can't be claimed is refused with `invalid_name`. */
export const ClaimDomain = z.object({ domain: TypedDomain(DOMAIN_INPUT_MAX_CHARS) });
export const BindDomain = z.object({ tunnel_id: Uuid });

export const CustomDomain = z.object({
  id: z.uuid(),
  domain: z.string(),
  verified: z.boolean(),
  verificationToken: z
    .string()
    .describe("The required value of the TXT record at `_svc-challenge.<domain>`."),
  proofMissingSince: Instant.nullable().describe(
    "Since when the record of a verified domain has been missing: the domain is released after 7 days. null: it was there at the last check.",
  ),
  boundTunnelId: z.uuid().nullable(),
});
export type CustomDomain = z.infer<typeof CustomDomain>;

/** The query of a TLS proxy before it requests a certificate. */
export const CertificateCheckQuery = z.object({
  domain: z
    .string()
    .min(1)
    .max(HOST_MAX_CHARS + 1),
});
