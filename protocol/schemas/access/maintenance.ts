/** Maintenance mode: a tunnel that is closed for a while, with an optional message to its visitors. */
import { z } from "zod";
import { STORABLE_RULE } from "../scalars.ts";

const MAINTENANCE_MESSAGE_MAX_CHARS = 500;

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
