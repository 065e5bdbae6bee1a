/** One delivery: its headers, its body, and whether it was acknowledged. */
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Delivery, ReceiverState } from "../../../../protocol/schemas/webhooks.ts";
import { receiverQuery } from "../../../api/receivers.ts";
import { call } from "../../../api/session.ts";
import { useHasRole } from "../../../app/roles.ts";
import type { QueryParameters } from "../../../app/query-parameters.ts";
import { CopyButton } from "../../../ui/copy.tsx";
import { Fact, Facts } from "../../../ui/facts.tsx";
import { ConfirmButton } from "../../../ui/forms/dialog.tsx";
import { notify } from "../../../ui/feedback/notifications.tsx";
import { Badge, Section } from "../../../ui/section.tsx";
import { VisitorText } from "../../../ui/text/visitor-text.tsx";
import { ExactTime } from "../../../ui/time.tsx";
import { FieldTable } from "../../requests/detail/field-table.tsx";
import "../../requests/detail/detail.css";
import { AcknowledgementBadge } from "./acknowledgement-badge.tsx";
import { readEventType } from "./event-type.ts";
import { isAcknowledged } from "./is-acknowledged.ts";
import { DeliveryBody } from "./delivery-body.tsx";

interface DeliveryDetailProps {
  receiver: ReceiverState;
  delivery: Delivery;
}

export function DeliveryDetail({ receiver, delivery }: DeliveryDetailProps) {
  const headers = Object.entries(delivery.headers);
  const canChange = useHasRole("member");
  const isDone = isAcknowledged(receiver, delivery);
  const type = readEventType(receiver.validator, delivery);
  return (
    <div className="delivery-detail">
      <Link
        to="."
        search={(current: QueryParameters) => ({ ...current, delivery: "" })}
        resetScroll={false}
        className="delivery-back"
      >
        Back to the deliveries
      </Link>
      <Section
        title="Delivery"
        actions={
          !isDone && canChange && <AcknowledgeButton receiver={receiver} delivery={delivery} />
        }
      >
        <Facts>
          <Fact name="Event" isWide>
            {type === null ? <span className="hint">unknown</span> : <VisitorText text={type} />}
          </Fact>
          <Fact name="ID" isWide>
            <span className="delivery-full-id">
              <code>
                <VisitorText text={delivery.id} />
              </code>
              <CopyButton text={delivery.id} label="Copy the id" kind="quiet" />
            </span>
          </Fact>
          <Fact name="Received">
            <ExactTime timestamp={delivery.receivedAt} isPrecise />
          </Fact>
          <Fact name="Signature">
            <Badge tone="good">verified</Badge>
          </Fact>
          <Fact name="State">
            <AcknowledgementBadge isDone={isDone} />
          </Fact>
          <Fact name="Content type">
            <bdi>{delivery.contentType ?? "none"}</bdi>
          </Fact>
        </Facts>
      </Section>
      <Section title="Body">
        <DeliveryBody key={delivery.cursor} delivery={delivery} />
      </Section>
      <Section
        title="Headers"
        actions={
          <CopyButton
            text={headers.map(([name, value]) => `${name}: ${value}`).join("\n")}
            label="Copy the headers"
          />
        }
      >
        <FieldTable
          caption="Headers of the delivery"
          rows={headers.map(([name, value]) => ({ name, value }))}
        />
      </Section>
    </div>
  );
}

function AcknowledgeButton({ receiver, delivery }: DeliveryDetailProps) {
  const queries = useQueryClient();
  return (
    <ConfirmButton
      button={{ children: "Acknowledge up to here" }}
      title="Acknowledge all deliveries up to this one?"
      submit="Acknowledge"
      onSubmit={async () => {
        const path = `/webhook-receivers/${receiver.id}/ack`;
        await call("POST", path, { cursor: delivery.cursor });
        await queries.invalidateQueries(receiverQuery(receiver.id));
        notify("The deliveries were acknowledged.");
      }}
    >
      <p>
        <code>underpass webhooks</code> no longer forwards them, unless it is started with{" "}
        <code>--since</code>. A full receiver removes them first. This can't be undone.
      </p>
    </ConfirmButton>
  );
}
