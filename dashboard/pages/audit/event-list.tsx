/** Audit events, newest first, one page at a time. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { AuditEvent } from "../../../protocol/schemas/organizations/audit.ts";
import { useMe } from "../../app/session-state.ts";
import { ActionButton } from "../../ui/button.tsx";
import { Fact, Facts } from "../../ui/facts.tsx";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { Badge, Detail } from "../../ui/section.tsx";
import { ExactTime, RelativeTime } from "../../ui/time.tsx";
import { loadEvents, type EventFilter, type EventsRoute } from "./event-filter.ts";
import { describeEvent, type ResourceNames } from "./sentences.ts";
import { useResourceNames } from "./use-resource-names.ts";
import "./audit.css";

const PAGE_EVENTS = 50;
/** New events appear by themselves while only the first page is shown. */
const RELOAD_MS = 10_000;
const NO_FILTER: EventFilter = {};

interface EventListProps {
  path: EventsRoute;
  filter?: EventFilter;
}

export function EventList({ path, filter = NO_FILTER }: EventListProps) {
  const names = useResourceNames();
  const events = useInfiniteQuery({
    queryKey: ["events", path, filter],
    initialPageParam: "",
    queryFn: ({ pageParam: after, signal }) =>
      loadEvents(path, filter, { limit: PAGE_EVENTS, after }, signal),
    getNextPageParam: (page) => (page.length < PAGE_EVENTS ? undefined : page.at(-1)?.id),
    refetchInterval: ({ state }) => (state.data?.pages.length === 1 ? RELOAD_MS : false),
    // The events of the previous filter stay until those of the new one have arrived.
    placeholderData: (previous) => previous,
  });
  return (
    <QueryContent query={events} lines={8}>
      {({ pages }) =>
        pages.flat().length === 0 ? (
          <p>No event matches.</p>
        ) : (
          <>
            <ol className="event-list" aria-busy={events.isPlaceholderData}>
              {pages.flat().map((event) => (
                <EventRow
                  key={event.id}
                  event={event}
                  names={names}
                  isPersonal={path === "/me/events"}
                />
              ))}
            </ol>
            {events.hasNextPage && (
              <div className="actions">
                <ActionButton action={() => events.fetchNextPage({ throwOnError: true })}>
                  Show more
                </ActionButton>
              </div>
            )}
          </>
        )
      }
    </QueryContent>
  );
}

interface RowProps {
  event: AuditEvent;
  names: ResourceNames;
  isPersonal: boolean;
}

/** The details are shown when the user opens the row. */
function EventRow({ event, names, isPersonal }: RowProps) {
  const { user } = useMe();
  const { timestamp, ipAddress } = event;
  return (
    <li>
      <details>
        <summary>
          <span className="event-time">
            <ExactTime timestamp={timestamp} />
          </span>
          <span>
            {describeEvent(event, names, isPersonal ? user.email : null).map((part, index) =>
              typeof part === "string" ? (
                part
              ) : (
                <strong key={index}>
                  <bdi>{part.value}</bdi>
                </strong>
              ),
            )}{" "}
            {event.metadata.newDevice === true && <Badge tone="warning">new device</Badge>}
            {event.metadata.newAddress === true && <Badge>new address</Badge>}
          </span>
          <bdi className="event-address">{ipAddress}</bdi>
        </summary>
        <EventDetails event={event} hasFilters={!isPersonal} />
      </details>
    </li>
  );
}

function EventDetails({ event, hasFilters }: { event: AuditEvent; hasFilters: boolean }) {
  const { action, timestamp, userEmail, ipAddress, resourceType, resourceId, metadata } = event;
  const renderValue = (name: string, value: string, children: ReactNode) =>
    hasFilters ? (
      <FilterLink name={name} value={value}>
        {children}
      </FilterLink>
    ) : (
      children
    );
  return (
    <Facts>
      <Fact name="When">
        <ExactTime timestamp={timestamp} isPrecise />
        <Detail>
          <RelativeTime timestamp={timestamp} />
        </Detail>
      </Fact>
      <Fact name="Action">{renderValue("action", action, <code>{action}</code>)}</Fact>
      {userEmail !== null && (
        <Fact name="Person">{renderValue("actor", userEmail, <bdi>{userEmail}</bdi>)}</Fact>
      )}
      {ipAddress !== null && (
        <Fact name="IP address">{renderValue("ip", ipAddress, <bdi>{ipAddress}</bdi>)}</Fact>
      )}
      <Fact name={`ID of the ${resourceType.replaceAll("_", " ")}`}>
        {renderValue("text", resourceId, <code>{resourceId}</code>)}
      </Fact>
      {Object.entries(metadata).map(([key, value]) => (
        <Fact key={key} name={key}>
          <bdi>{typeof value === "string" ? value : JSON.stringify(value)}</bdi>
        </Fact>
      ))}
    </Facts>
  );
}

interface FilterLinkProps {
  name: string;
  value: string;
  children: ReactNode;
}

function FilterLink({ name, value, children }: FilterLinkProps) {
  return (
    <Link to="." search={{ [name]: value }} title="Show only events with this">
      {children}
    </Link>
  );
}
