/** The audit log, as it is read. */
import { z } from "zod";
import { EMAIL_MAX_CHARS } from "../../limits.ts";
import { AUDIT_RESOURCES, AuditAction } from "./audit-actions.ts";
import { Instant, ONE_LINE_RULE, PageQuery } from "../scalars.ts";

export const AuditEvent = z.object({
  id: z.uuid(),
  timestamp: Instant,
  action: AuditAction,
  resourceType: z.enum(AUDIT_RESOURCES),
  resourceId: z.string(),
  /** null: no one was signed in, or the account has been deleted. */
  userEmail: z.string().nullable(),
  ipAddress: z.string().nullable(),
  metadata: z.record(z.string(), z.unknown()),
});
export type AuditEvent = z.infer<typeof AuditEvent>;

/** An event of one person, in any organization. null: in none. */
export const PersonalEvent = AuditEvent.extend({ organizationId: z.uuid().nullable() });
export type PersonalEvent = z.infer<typeof PersonalEvent>;

export const EventQuery = PageQuery.extend({
  /** RFC 3339. Older events are left out. */
  start_time: z.iso.datetime({ offset: true }).optional(),
  action: z
    .string()
    .regex(/^[a-z_]+$/, "must be the name of an audit action")
    .optional(),
  /** The id or the email address of the user who did it. */
  actor: z
    .string()
    .max(EMAIL_MAX_CHARS)
    .regex(...ONE_LINE_RULE)
    .optional(),
});
