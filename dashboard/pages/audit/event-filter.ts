/** The filter of the audit log. Its values are in the URL. */
import type { AuditEvent } from "../../../protocol/schemas/organizations/audit.ts";
import { call } from "../../api/session.ts";
import type { QueryParameters } from "../../app/query-parameters.ts";

const HOUR_MS = 3_600_000;

export const RANGES: readonly { id: string; title: string; ms: number }[] = [
  { id: "1h", title: "Last hour", ms: HOUR_MS },
  { id: "24h", title: "Last 24 hours", ms: 24 * HOUR_MS },
  { id: "7d", title: "Last 7 days", ms: 7 * 24 * HOUR_MS },
  { id: "30d", title: "Last 30 days", ms: 30 * 24 * HOUR_MS },
];

/** The names of the parameters in the page's URL. */
export const FILTER_NAMES = ["text", "action", "actor", "ip", "range", "from", "to"] as const;
export type EventFilter = { [Name in (typeof FILTER_NAMES)[number]]?: string };

export function pickFilter(search: QueryParameters): EventFilter {
  const given = FILTER_NAMES.flatMap((name) => (search[name] ? [[name, search[name]]] : []));
  return Object.fromEntries(given) as EventFilter;
}

export interface EventPage {
  limit: number;
  /** The id of the last event of the page before. */
  after?: string | undefined;
}

/** The routes that list events. That of a person's own events has no filters. */
type EventsRoute = "/events" | "/me/events";

export function loadEvents(
  route: EventsRoute,
  filter: EventFilter,
  page: EventPage,
  signal: AbortSignal,
): Promise<AuditEvent[]> {
  return call<AuditEvent[]>("GET", getEventsPath(route, filter, page), undefined, signal);
}

/** The path and the query of a request for a page of events. */
export function getEventsPath(
  route: EventsRoute,
  filter: EventFilter,
  { limit, after }: EventPage,
): string {
  const query = new URLSearchParams({ limit: String(limit) });
  for (const [name, value] of Object.entries({ ...toQuery(filter), after })) {
    if (value !== undefined && value !== "") query.set(name, value);
  }
  return `${route}?${query}`;
}

function toQuery(filter: EventFilter): Record<string, string | undefined> {
  const range = RANGES.find(({ id }) => id === filter.range);
  return {
    text: filter.text,
    action: filter.action,
    actor: filter.actor,
    ip_address: filter.ip,
    start_time: range ? new Date(Date.now() - range.ms).toISOString() : toInstant(filter.from),
    end_time: range ? undefined : toInstant(filter.to),
  };
}

/** From the local time of a field, such as `2026-11-23T19:45`. */
function toInstant(local: string | undefined): string | undefined {
  const at = new Date(local ?? "");
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
