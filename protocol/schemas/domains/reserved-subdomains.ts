/** Reserved subdomains. */
import { z } from "zod";
import { Instant, Label } from "../scalars.ts";

export const ReserveSubdomain = z.object({ subdomain: Label });

export const ReservedSubdomain = z.object({
  id: z.uuid(),
  subdomain: z.string(),
  organization_id: z.uuid(),
  created_at: Instant,
});
export type ReservedSubdomain = z.infer<typeof ReservedSubdomain>;
