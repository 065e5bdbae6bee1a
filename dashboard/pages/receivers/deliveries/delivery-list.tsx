/** The list of deliveries: the type of each event, its id, when it was received, and whether it was acknowledged. */
import { Link } from "@tanstack/react-router";
import { memo, useMemo } from "react";
import type { Delivery, ReceiverState, Validator } from "../../../../protocol/schemas/webhooks.ts";
import type { QueryParameters } from "../../../app/query-parameters.ts";
import { formatBytes } from "../../../ui/numbers.ts";
import { VisitorText } from "../../../ui/text/visitor-text.tsx";
import { RelativeTime } from "../../../ui/time.tsx";
import { AcknowledgementBadge } from "./acknowledgement-badge.tsx";
import { readEventType } from "./event-type.ts";
import { isAcknowledged } from "./is-acknowledged.ts";

interface DeliveryListProps {
  receiver: ReceiverState;
  deliveries: readonly Delivery[];
}

export function DeliveryList({ receiver, deliveries }: DeliveryListProps) {
  return (
    <ul aria-label="Deliveries">
      {deliveries.map((delivery) => (
        <DeliveryItem
          key={delivery.cursor}
          delivery={delivery}
          validator={receiver.validator}
          isDone={isAcknowledged(receiver, delivery)}
        />
      ))}
    </ul>
  );
}

interface DeliveryItemProps {
  delivery: Delivery;
  validator: Validator;
  isDone: boolean;
}

const DeliveryItem = memo(function DeliveryItem(props: DeliveryItemProps) {
  const { delivery, validator, isDone } = props;
  const type = useMemo(() => readEventType(validator, delivery), [validator, delivery]);
  return (
    <li>
      <Link
        to="."
        search={(current: QueryParameters) => ({ ...current, delivery: delivery.cursor })}
        resetScroll={false}
        data-delivery={delivery.cursor}
      >
        {type !== null && <VisitorText className="event-type" text={type} />}
        <VisitorText
          className={type === null ? "delivery-id" : "delivery-id hint"}
          text={delivery.id}
        />
        <span className="hint">
          <RelativeTime timestamp={delivery.receivedAt} /> ·{" "}
          {formatBytes(countBytes(delivery.body))}
        </span>
        <AcknowledgementBadge isDone={isDone} />
      </Link>
    </li>
  );
});

/** @param base64 with its padding. @returns the number of bytes that it encodes. */
function countBytes(base64: string): number {
  return (base64.length / 4) * 3 - (/=*$/.exec(base64)?.[0].length ?? 0);
}
