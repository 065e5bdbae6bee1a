/** /receivers: the webhook receivers of the organization. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Receiver, ReceiverState } from "../../../protocol/schemas/webhooks.ts";
import { receiverQuery, receiversQuery } from "../../api/receivers.ts";
import { useHasRole } from "../../app/roles.ts";
import { CommandLine } from "../../ui/command-line.tsx";
import { CopyButton } from "../../ui/copy.tsx";
import { EmptyState } from "../../ui/feedback/empty-state.tsx";
import { useIsOnScreen } from "../../ui/layout/on-screen.ts";
import { formatCount } from "../../ui/numbers.ts";
import { PageFrame } from "../../ui/page.tsx";
import { TablePage, type Column } from "../../ui/table.tsx";
import { RelativeTime } from "../../ui/time.tsx";
import { NewReceiverButton } from "./new-receiver.tsx";
import { VENDORS } from "./vendors.tsx";
import "./receivers.css";

const COLUMNS: Column<Receiver>[] = [
  {
    title: "Name",
    render: ({ id, name }) => (
      <Link to="/receivers/$id" params={{ id }}>
        <bdi>{name}</bdi>
      </Link>
    ),
  },
  { title: "Vendor", isSecondary: true, render: ({ validator }) => VENDORS[validator].name },
  {
    title: "Stored deliveries",
    align: "end",
    isSecondary: true,
    render: ({ id }) => <ReceiverCell id={id} render={({ kept }) => formatCount(kept)} />,
  },
  {
    title: "Last received",
    render: ({ id }) => <ReceiverCell id={id} render={renderLastReceived} />,
  },
  {
    title: "URL",
    isSecondary: true,
    render: ({ url, name }) => <ReceiverUrl url={url} name={name} />,
  },
];

export function Page() {
  const receivers = useQuery(receiversQuery);
  const canChange = useHasRole("member");
  return (
    <PageFrame
      title="Webhook receivers"
      about="Addresses that vendors deliver to, whether your machine is running or not."
      actions={canChange ? <NewReceiverButton /> : undefined}
    >
      <TablePage
        caption="Webhook receivers"
        columns={COLUMNS}
        query={receivers}
        getKey={({ id }) => id}
        empty={
          <EmptyState
            title={canChange ? "Create your first webhook receiver" : "No webhook receivers yet"}
          >
            <p>
              It checks the signature of each delivery and stores it, until your own server has it.
            </p>
          </EmptyState>
        }
      />
      <CommandLine
        requests={[
          { label: "List the receivers", path: "/webhook-receivers" },
          {
            label: "Create one",
            method: "POST",
            path: "/webhook-receivers",
            body: { name: "deploys", validator: "code_host", secret: "SECRET" },
          },
        ]}
      />
    </PageFrame>
  );
}

/** Each receiver on the screen costs a request, so that a long list does not ask for all of them. */
function ReceiverCell({ id, render }: { id: string; render: (state: ReceiverState) => ReactNode }) {
  const [cell, isOnScreen] = useIsOnScreen<HTMLSpanElement>();
  const { data } = useQuery({ ...receiverQuery(id), enabled: isOnScreen });
  return <span ref={cell}>{data === undefined ? "…" : render(data)}</span>;
}

function renderLastReceived({ lastReceivedAt: at }: ReceiverState) {
  return at === null ? "never" : <RelativeTime timestamp={at} />;
}

function ReceiverUrl({ url, name }: { url: string; name: string }) {
  return (
    <div className="url-cell">
      <code>{url}</code>
      <CopyButton kind="quiet" text={url} label={`Copy the URL of ${name}`} />
    </div>
  );
}
