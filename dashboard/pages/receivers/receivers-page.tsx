/** /receivers: the webhook receivers of the organization. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Receiver } from "../../../protocol/schemas/webhooks.ts";
import { receiverQuery, receiversQuery } from "../../api/receivers.ts";
import { useHasRole } from "../../app/roles.ts";
import { CopyButton } from "../../ui/copy.tsx";
import { EmptyState } from "../../ui/feedback/empty-state.tsx";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { formatCount } from "../../ui/numbers.ts";
import { PageFrame } from "../../ui/page.tsx";
import { Table, type Column } from "../../ui/table.tsx";
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
  { title: "Vendor", render: ({ validator }) => VENDORS[validator].name },
  { title: "Stored deliveries", align: "end", render: ({ id }) => <StoredCount id={id} /> },
  { title: "Last received", render: ({ id }) => <LastReceived id={id} /> },
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
      <QueryContent query={receivers}>
        {(list) =>
          list.length === 0 ? (
            <EmptyState title="Create your first webhook receiver">
              <p>
                It checks the signature of each delivery and stores it, until your own server has
                it.
              </p>
            </EmptyState>
          ) : (
            <section className="card" aria-label="Webhook receivers">
              <Table
                caption="Webhook receivers"
                columns={COLUMNS}
                entries={list}
                getKey={({ id }) => id}
              />
            </section>
          )
        }
      </QueryContent>
    </PageFrame>
  );
}

function StoredCount({ id }: { id: string }) {
  const { data } = useQuery(receiverQuery(id));
  return data === undefined ? "…" : formatCount(data.kept);
}

function LastReceived({ id }: { id: string }) {
  const { data } = useQuery(receiverQuery(id));
  if (data === undefined) return "…";
  return data.lastReceivedAt === null ? "never" : <RelativeTime timestamp={data.lastReceivedAt} />;
}

function ReceiverUrl({ url, name }: { url: string; name: string }) {
  return (
    <div className="url-cell">
      <code>{url}</code>
      <CopyButton kind="quiet" text={url} label={`Copy the URL of ${name}`} />
    </div>
  );
}
