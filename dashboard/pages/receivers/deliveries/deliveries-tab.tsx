/** The deliveries to a receiver, and the selected one beside them. Range and selection are in the URL. */
import { useEffect, useMemo, useRef, type RefObject } from "react";
import type { ReceiverState } from "../../../../protocol/schemas/webhooks.ts";
import { DAY_MS, HOUR_MS } from "../../../../shared/time.ts";
import { useQueryParameters, useSetQueryParameters } from "../../../app/query-parameters.ts";
import { useShortcuts } from "../../../app/shortcuts.ts";
import { Button } from "../../../ui/button.tsx";
import { EmptyState } from "../../../ui/feedback/empty-state.tsx";
import { isFocusInvisible } from "../../../ui/focus/lost-focus.ts";
import { ErrorNotice } from "../../../ui/feedback/error-notice.tsx";
import { Skeleton } from "../../../ui/feedback/skeleton.tsx";
import { Badge } from "../../../ui/section.tsx";
import { ForwardCommand } from "../forward-command.tsx";
import { DeliveryDetail } from "./delivery-detail.tsx";
import { DeliveryList } from "./delivery-list.tsx";
import { useDeliveries, type DeliveryFeed } from "./use-deliveries.ts";

const RANGES: { value: string; label: string; ms: number | null }[] = [
  { value: "1h", label: "the last hour", ms: HOUR_MS },
  { value: "24h", label: "the last 24 hours", ms: DAY_MS },
  { value: "7d", label: "the last 7 days", ms: 7 * DAY_MS },
  { value: "all", label: "all that are stored", ms: null },
];
const RANGE_DEFAULT = "24h";

export function DeliveriesTab({ receiver }: { receiver: ReceiverState }) {
  const { since: range = RANGE_DEFAULT, delivery: cursor } = useQueryParameters();
  const setParameters = useSetQueryParameters();
  const since = useMemo(() => getRangeStart(range), [range]);
  const feed = useDeliveries(receiver.id, since);
  const { deliveries } = feed;
  const selected = deliveries.find((delivery) => delivery.cursor === cursor);

  const panes = usePaneFocus(selected?.cursor);

  const move = (step: number) => {
    const index = deliveries.findIndex((delivery) => delivery.cursor === cursor);
    const next = deliveries[index === -1 ? 0 : index + step];
    if (next) setParameters({ delivery: next.cursor });
  };
  useShortcuts("Deliveries", [
    { keys: ["j"], title: "Next delivery", act: () => move(1) },
    { keys: ["k"], title: "Previous delivery", act: () => move(-1) },
  ]);
  return (
    <>
      <div className="delivery-bar">
        <label>
          Show{" "}
          <select
            value={range}
            onChange={(event) => setParameters({ since: event.currentTarget.value, delivery: "" })}
          >
            {RANGES.map(({ value, label }) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <FeedBadge phase={feed.phase} />
        <span className="hint">
          Deliveries without a valid signature are refused, and not listed.
        </span>
      </div>
      {feed.phase === "failed" && <ErrorNotice error={feed.error} onRetry={feed.resume} />}
      {deliveries.length === 0 ? (
        <NoDeliveries receiver={receiver} phase={feed.phase} />
      ) : (
        <div ref={panes} className={selected ? "delivery-panes has-selection" : "delivery-panes"}>
          <div className="delivery-list">
            <DeliveryList receiver={receiver} deliveries={deliveries} />
            {feed.phase === "paused" && (
              <div className="actions">
                <Button onClick={feed.resume}>Load later deliveries</Button>
              </div>
            )}
          </div>
          {selected ? (
            <DeliveryDetail receiver={receiver} delivery={selected} />
          ) : (
            <p className="hint delivery-choose">Choose a delivery to see its headers and body.</p>
          )}
        </div>
      )}
    </>
  );
}

/**
 * On a narrow screen a delivery replaces the list, and the list the delivery: the link that was pressed is gone. The focus
 * moves to the link back, or returns to the entry of the list, which also scrolls it into view.
 */
function usePaneFocus(cursor: string | undefined): RefObject<HTMLDivElement | null> {
  const panes = useRef<HTMLDivElement>(null);
  const previous = useRef(cursor);
  useEffect(() => {
    const target = cursor ? ".delivery-back" : `[data-delivery="${previous.current}"]`;
    previous.current = cursor;
    if (isFocusInvisible()) panes.current?.querySelector<HTMLElement>(target)?.focus();
  }, [cursor]);
  return panes;
}

/** @returns when the range begins, in RFC 3339; null for the range of all stored deliveries. */
function getRangeStart(range: string): string | null {
  const { ms } = RANGES.find(({ value }) => value === range) ?? { ms: null };
  return ms === null ? null : new Date(Date.now() - ms).toISOString();
}

function FeedBadge({ phase }: { phase: DeliveryFeed["phase"] }) {
  switch (phase) {
    case "live":
      return <Badge tone="good">live</Badge>;
    case "loading":
      return <Badge>loading</Badge>;
    case "paused":
      return <Badge tone="warning">more are stored</Badge>;
    case "retrying":
      return <Badge tone="warning">reconnecting</Badge>;
    case "failed":
      return <Badge tone="bad">stopped</Badge>;
  }
}

interface NoDeliveriesProps {
  receiver: ReceiverState;
  phase: DeliveryFeed["phase"];
}

function NoDeliveries({ receiver, phase }: NoDeliveriesProps) {
  if (phase === "failed") return null;
  if (phase !== "live") return <Skeleton lines={6} />;
  if (receiver.kept > 0) {
    return (
      <p>No delivery arrived in this time range. Choose a longer one to see older deliveries.</p>
    );
  }
  return (
    <EmptyState title="Waiting for the first delivery">
      <p>
        Enter the URL at the vendor, or send a test delivery: it appears here at once. This forwards
        deliveries to port 3000 of your machine:
      </p>
      <ForwardCommand receiver={receiver} />
    </EmptyState>
  );
}
