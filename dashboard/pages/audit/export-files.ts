/** Audit events as files. */
import type { AuditEvent } from "../../../protocol/schemas/organizations/audit.ts";
import { formatEvent, type ResourceNames } from "./sentences.ts";

export type ExportFormat = "csv" | "json";

export function formatEvents(
  events: readonly AuditEvent[],
  format: ExportFormat,
  names: ResourceNames,
): string {
  if (format === "json") return `${JSON.stringify(events, null, 2)}\n`;
  const header = [
    "id",
    "timestamp",
    "action",
    "description",
    "user_email",
    "ip_address",
    "resource_type",
    "resource_id",
    "metadata",
  ];
  const rows = events.map((event) => [
    event.id,
    event.timestamp,
    event.action,
    formatEvent(event, names),
    event.userEmail ?? "",
    event.ipAddress ?? "",
    event.resourceType,
    event.resourceId,
    JSON.stringify(event.metadata),
  ]);
  return [header, ...rows].map((cells) => `${cells.map(formatCell).join(",")}\r\n`).join("");
}

/** RFC 4180. A spreadsheet would run a cell that begins like a formula, so an apostrophe makes it text. */
function formatCell(text: string): string {
  const safe = /^[\s\p{Cf}]*[=+\-@|%\t\r]/u.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}
