/** Maintenance mode: a tunnel that is closed for a while, with an optional message to its visitors. */
import { z } from "zod";
import { MAINTENANCE_MESSAGE_MAX_CHARS } from "../../limits.ts";
import { STORABLE_RULE } from "../scalars.ts";

export const StartMaintenance = z.object({
  message: z
    .string()
    .max(MAINTENANCE_MESSAGE_MAX_CHARS)
    .regex(...STORABLE_RULE)
    .optional(),
});

export const MaintenanceState = z.object({
  id: z.uuid(),
  maintenance: z.boolean(),
  message: z.string().nullable(),
});
