/** Third-party sign-in: the possible providers, and the queries of their routes. */
import { z } from "zod";

export const PROVIDERS = ["idp_a", "idp_b"] as const;
export const ProviderName = z.enum(PROVIDERS);
export type ProviderName = z.infer<typeof ProviderName>;

export const Providers = z.object({ providers: z.array(ProviderName) });
export type Providers = z.infer<typeof Providers>;

export const StartSignIn = z.object({
  return_to: z
    .string()
    .default("/")
    .describe("A path of this service. Anything else counts as `/`."),
  moved: z
    .string()
    .optional()
    .describe(
      "Set by the redirect to the service's primary host, so that there is never a second redirect.",
    ),
});

/** The query of a provider's redirect back. The route checks whether it is complete, after it has removed its cookie. */
export const ProviderCallback = z.object({
  code: z.string().optional().describe("The provider's authorization code."),
  state: z.string().optional(),
  iss: z.string().optional(),
  error: z.string().optional().describe("Why there is no code (RFC 6749)."),
  error_description: z.string().optional(),
});
