/** The audit log, as it is read. */
import { z } from "zod";
import { EMAIL_MAX_CHARS } from "../../limits.ts";
import { AUDIT_RESOURCES } from "../../audit/action-description.ts";
import { AUDIT_ACTION_NAMES } from "../../audit/audit-actions.ts";
import { Instant, ONE_LINE_RULE, PageQuery, TypedInstant } from "../scalars.ts";

export const AuditAction = z.enum(AUDIT_ACTION_NAMES, "must be the name of an audit action");

export const AuditEvent = z.object({
  id: z.uuid(),
  timestamp: Instant,
  action: AuditAction,
  resourceType: z.enum(AUDIT_RESOURCES),
  resourceId: z.string(),
  userEmail: z
    .string()
    .nullable()
    .describe("null: no one was signed in, or the account has been deleted."),
  ipAddress: z.string().nullable(),
  metadata: z.record(z.string(), z.unknown()),
});
export type AuditEvent = z.infer<typeof AuditEvent>;

/** An event of one person, in any organization. null: in none. */
export const PersonalEvent = AuditEvent.extend({ organizationId: z.uuid().nullable() });
export type PersonalEvent = z.infer<typeof PersonalEvent>;

/** An IPv6 address that ends with an IPv4 address. */
const IP_ADDRESS_MAX_CHARS = 45;
/** Longer texts are in no event. */
const EVENT_TEXT_MAX_CHARS = 200;

export const EventQuery = PageQuery.extend({
  start_time: TypedInstant.optional().describe("RFC 3339. Older events are left out."),
  end_time: TypedInstant.optional().describe(
    "RFC 3339. Events at this time or later are left out.",
  ),
  action: AuditAction.optional(),
  actor: z
    .string()
    .max(EMAIL_MAX_CHARS)
    .regex(...ONE_LINE_RULE)
    .optional()
    .describe("The id or the email address of the user who did it."),
  ip_address: z
    .string()
    .max(IP_ADDRESS_MAX_CHARS)
    .regex(/^[\dA-Fa-f:.]+$/, "must be an IP address")
    .optional()
    .describe("The address from which it was done, as the events have it."),
  text: z
    .string()
    .max(EVENT_TEXT_MAX_CHARS)
    .regex(...ONE_LINE_RULE)
    .optional()
    .describe(
      "Text in the action, the user's address, the resource's id or the metadata, in any case. It is searched for in the 20,000 newest events that the other filters leave.",
    ),
});
