/** The filter of the audit log. Its values are in the URL. */
import type { AuditEvent } from "../../../protocol/schemas/organizations/audit.ts";
import { DAY_MS, HOUR_MS } from "../../../shared/time.ts";
import { load } from "../../api/session.ts";
import type { QueryParameters } from "../../app/query-parameters.ts";

export const RANGES: readonly { id: string; title: string; ms: number }[] = [
  { id: "1h", title: "Last hour", ms: HOUR_MS },
  { id: "24h", title: "Last 24 hours", ms: DAY_MS },
  { id: "7d", title: "Last 7 days", ms: 7 * DAY_MS },
  { id: "30d", title: "Last 30 days", ms: 30 * DAY_MS },
];

/** The names of the parameters in the page's URL. */
export const FILTER_NAMES = ["text", "action", "actor", "ip", "range", "from", "to"] as const;
export type EventFilter = { [Name in (typeof FILTER_NAMES)[number]]?: string };

/** Leaves out the parameters of the URL that do not belong to the filter. */
export function pickFilter(search: QueryParameters): EventFilter {
  const given = FILTER_NAMES.flatMap((name) => (search[name] ? [[name, search[name]]] : []));
  return Object.fromEntries(given) as EventFilter;
}

/** Which page of the list is requested. */
interface PageQuery {
  limit: number;
  /** The id of the last event of the page before. */
  after?: string | undefined;
}

/** The routes that list events: of the organization, and of the user. The second one has no filters. */
export type EventsRoute = "/events" | "/me/events";

/** The events of the user in the cache, which an action on the page of the account adds to. */
export const personalEventsFilter = { queryKey: ["events", "/me/events" satisfies EventsRoute] };

export function loadEvents(
  route: EventsRoute,
  filter: EventFilter,
  page: PageQuery,
  signal: AbortSignal,
): Promise<AuditEvent[]> {
  return load<AuditEvent[]>(getEventsPath(route, filter, page), signal);
}

/** The path and the query of a request for a page of events. */
export function getEventsPath(
  route: EventsRoute,
  filter: EventFilter,
  { limit, after }: PageQuery,
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

/** @param local the local time in a field, such as `2026-11-23T19:45`. @returns it in RFC 3339; undefined if it is none. */
function toInstant(local: string | undefined): string | undefined {
  const at = new Date(local ?? "");
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
