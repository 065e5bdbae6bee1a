/** The audit log, as it is read. */
import { z } from "zod";
import { EMAIL_MAX_CHARS } from "../../limits.ts";
import { Instant, ONE_LINE, PageQuery } from "../scalars.ts";

export const AuditEvent = z.object({
  id: z.uuid(),
  timestamp: Instant,
  /** One of the list in docs/api.md. */
  action: z.string(),
  resourceType: z.string(),
  resourceId: z.string(),
  /** null: nobody who was signed in, or an account that is gone. */
  userEmail: z.string().nullable(),
  ipAddress: z.string().nullable(),
  metadata: z.record(z.string(), z.unknown()),
});
export type AuditEvent = z.infer<typeof AuditEvent>;

/** Of one person, wherever it happened. null: in no organization. */
export const PersonalEvent = AuditEvent.extend({ organizationId: z.uuid().nullable() });
export type PersonalEvent = z.infer<typeof PersonalEvent>;

export const EventQuery = PageQuery.extend({
  /** RFC 3339. Nothing older is in the answer. */
  start_time: z.iso.datetime({ offset: true }).optional(),
  action: z
    .string()
    .regex(/^[a-z_]+$/, "must be an action's name")
    .optional(),
  /** The id or the e-mail address of whoever did it. */
  actor: z
    .string()
    .max(EMAIL_MAX_CHARS)
    .regex(...ONE_LINE)
    .optional(),
});
