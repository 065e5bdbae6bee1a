/** /receivers/:id: one webhook receiver. The selected tab is in the URL. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReceiverState } from "../../../protocol/schemas/webhooks.ts";
import { receiverQuery } from "../../api/receivers.ts";
import { useHasRole } from "../../app/roles.ts";
import {
  usePathId,
  useQueryParameters,
  useSetQueryParameters,
} from "../../app/query-parameters.ts";
import { CopyButton } from "../../ui/copy.tsx";
import { Fact, Facts } from "../../ui/facts.tsx";
import { MissingResource } from "../../ui/feedback/missing-resource.tsx";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { formatCount } from "../../ui/numbers.ts";
import { PageFrame } from "../../ui/page.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { ExactTime, RelativeTime } from "../../ui/time.tsx";
import { DeliveriesTab } from "./deliveries/deliveries-tab.tsx";
import { DeleteReceiverButton, RotateSecretButton } from "./receiver-actions.tsx";
import { SetupTab } from "./signature/setup-tab.tsx";
import { TestTab } from "./signature/test-tab.tsx";
import { VENDORS } from "./vendors.tsx";
import "./receivers.css";

export function Page() {
  const id = usePathId();
  const receiver = useQuery(receiverQuery(id));
  const canChange = useHasRole("member");
  const { data } = receiver;
  return (
    <PageFrame
      title={data?.name ?? "Webhook receiver"}
      about={data && "Webhook receiver"}
      width="wide"
      actions={
        data &&
        canChange && (
          <>
            <RotateSecretButton receiver={data} />
            <DeleteReceiverButton receiver={data} />
          </>
        )
      }
    >
      <QueryContent
        query={receiver}
        lines={8}
        missing={
          <MissingResource id={id} kind="receiver" title="This receiver does not exist">
            <p>It may have been deleted.</p>
            <Link to="/receivers" className="button">
              Show all receivers
            </Link>
          </MissingResource>
        }
      >
        {(loaded) => (
          <>
            <Summary receiver={loaded} />
            <ReceiverTabs receiver={loaded} />
          </>
        )}
      </QueryContent>
    </PageFrame>
  );
}

function Summary({ receiver }: { receiver: ReceiverState }) {
  const { url, validator, kept, lastReceivedAt, previousSecretUntil } = receiver;
  return (
    <section className="card receiver-summary" aria-label="Summary">
      <div className="receiver-url">
        <code>{url}</code>
        <CopyButton text={url} label="Copy the URL" />
      </div>
      <Facts>
        <Fact name="Vendor">{VENDORS[validator].name}</Fact>
        <Fact name="Stored deliveries">{formatCount(kept)}</Fact>
        <Fact name="Last received">
          {lastReceivedAt === null ? "never" : <RelativeTime timestamp={lastReceivedAt} />}
        </Fact>
        {previousSecretUntil !== null && (
          <Fact name="Previous secret accepted until">
            <ExactTime timestamp={previousSecretUntil} />
          </Fact>
        )}
      </Facts>
    </section>
  );
}

function ReceiverTabs({ receiver }: { receiver: ReceiverState }) {
  const { tab } = useQueryParameters();
  const setParameters = useSetQueryParameters();
  return (
    <div className="receiver-tabs">
      <Tabs
        label="Views of the receiver"
        selected={tab}
        onSelect={(next) => setParameters({ tab: next }, { isNewEntry: true })}
        tabs={[
          {
            id: "deliveries",
            title: "Deliveries",
            content: <DeliveriesTab receiver={receiver} />,
          },
          { id: "setup", title: "Set up", content: <SetupTab receiver={receiver} /> },
          { id: "test", title: "Test", content: <TestTab receiver={receiver} /> },
        ]}
      />
    </div>
  );
}
