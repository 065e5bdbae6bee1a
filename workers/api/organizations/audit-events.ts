/** /events: the audit log of the organization. /me/events: the audit log of the caller's account. */
import { z } from "zod";
import {
  AuditEvent,
  EventQuery,
  PersonalEvent,
} from "../../../protocol/schemas/organizations/audit.ts";
import { PageQuery, Uuid } from "../../../protocol/schemas/scalars.ts";
import { normalizeEmail } from "../../identity/accounts/emails.ts";
import {
  listAuditEvents,
  listPersonalEvents,
  type AuditEventRow,
} from "../../store/organizations/audit-events.ts";
import { allow, allowRead, readAsCaller } from "../guard.ts";
import { createRouter, jsonResponse, route } from "../route.ts";

export const auditEvents = createRouter();

auditEvents.openapi(
  route({
    operationId: "listEvents",
    method: "get",
    path: "/events",
    summary: "List the audit log of the organization",
    guard: allowRead("events:read"),
    query: EventQuery,
    responses: { 200: jsonResponse("The events, newest first.", z.array(AuditEvent)) },
  }),
  async (c) => {
    const {
      start_time: start,
      end_time: end,
      ip_address: ip,
      actor,
      ...query
    } = c.req.valid("query");
    const filter = {
      ...query,
      ip,
      since: start === undefined ? undefined : new Date(start),
      until: end === undefined ? undefined : new Date(end),
      actor: actor === undefined ? undefined : parseActor(actor),
    };
    const rows = await readAsCaller(c, (db, orgId) => listAuditEvents(db, orgId, filter));
    return c.json(rows.map(toEvent), 200);
  },
);

auditEvents.openapi(
  route({
    operationId: "listPersonalEvents",
    method: "get",
    path: "/me/events",
    summary: "List the audit log of the caller's account",
    guard: allow("account:self"),
    query: PageQuery,
    responses: { 200: jsonResponse("The events, newest first.", z.array(PersonalEvent)) },
  }),
  async (c) => {
    const rows = await listPersonalEvents(c.var.db, c.var.principal.userId, c.req.valid("query"));
    return c.json(
      rows.map((row) => ({ ...toEvent(row), organizationId: row.orgId })),
      200,
    );
  },
);

function parseActor(text: string): { id: string } | { email: string } {
  const id = Uuid.safeParse(text);
  return id.success ? { id: id.data } : { email: normalizeEmail(text) };
}

function toEvent(row: AuditEventRow): AuditEvent {
  const { id, createdAt, action, resourceType, resourceId, userEmail, ip, metadata } = row;
  return {
    id,
    timestamp: createdAt.toISOString(),
    action,
    resourceType,
    resourceId,
    userEmail,
    ipAddress: ip,
    metadata,
  };
}
