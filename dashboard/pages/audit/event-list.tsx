/** Audit events, newest first, one page at a time. */
import { useInfiniteQuery } from "@tanstack/react-query";
import type { AuditEvent } from "../../../protocol/schemas/organizations/audit.ts";
import { call } from "../../api/session.ts";
import { ActionButton } from "../../ui/button.tsx";
import { ErrorNotice } from "../../ui/feedback/error-notice.tsx";
import { Skeleton } from "../../ui/feedback/query-content.tsx";
import { Detail, Row, Rows } from "../../ui/section.tsx";
import { ExactTime } from "../../ui/time.tsx";

const PAGE_ROWS = 20;

interface Props {
  /** The route that lists the events. */
  path: "/events" | "/me/events";
}

export function EventList({ path }: Props) {
  const events = useInfiniteQuery({
    queryKey: ["events", path],
    initialPageParam: "",
    queryFn({ pageParam: after, signal }) {
      const query = new URLSearchParams({ limit: String(PAGE_ROWS), ...(after && { after }) });
      return call<AuditEvent[]>("GET", `${path}?${query}`, undefined, signal);
    },
    getNextPageParam: (page) => (page.length < PAGE_ROWS ? undefined : page.at(-1)?.id),
  });
  if (events.data === undefined) {
    if (!events.isError) return <Skeleton lines={6} />;
    return <ErrorNotice error={events.error} onRetry={() => void events.refetch()} />;
  }
  return (
    <>
      <Rows>
        {events.data.pages.flat().map((event) => (
          <EventRow key={event.id} event={event} />
        ))}
      </Rows>
      {events.hasNextPage && (
        <div className="actions">
          <ActionButton action={() => events.fetchNextPage({ throwOnError: true })}>
            Show more
          </ActionButton>
        </div>
      )}
    </>
  );
}

/** The action's name without underscores is readable text. */
function EventRow({ event: { action, timestamp, userEmail, ipAddress } }: { event: AuditEvent }) {
  const text = action.replaceAll("_", " ");
  return (
    <Row>
      <strong>{text.slice(0, 1).toUpperCase() + text.slice(1)}</strong>
      <Detail>
        <ExactTime timestamp={timestamp} />
        {[userEmail, ipAddress].filter(Boolean).map((by) => ` · ${by}`)}
      </Detail>
    </Row>
  );
}
