/** /: the state of the organization at a glance. */
import { useQuery } from "@tanstack/react-query";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { tunnelsQuery } from "../../api/tunnels.ts";
import { useMe } from "../../app/session-state.ts";
import { CommandLine } from "../../ui/command-line.tsx";
import { FirstTunnel } from "../../ui/feedback/first-tunnel.tsx";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { Skeleton } from "../../ui/feedback/skeleton.tsx";
import { PageFrame } from "../../ui/page.tsx";
import { ConnectedSection } from "./connected-section.tsx";
import { FailureSection } from "./failure-section.tsx";
import { FirstSteps } from "./first-steps.tsx";
import { Notices, useAreNoticesLoading } from "./notices.tsx";
import "./overview.css";
import { TrafficFigures } from "./traffic-figures.tsx";
import { MonthAndPlan } from "./month-and-plan.tsx";

export function Page() {
  const { active_org: organization } = useMe();
  const tunnels = useQuery(tunnelsQuery);
  const areNoticesLoading = useAreNoticesLoading();
  return (
    <PageFrame title="Overview" about={organization.name}>
      {areNoticesLoading ? (
        <Skeleton lines={8} />
      ) : (
        <>
          <Notices />
          <QueryContent query={tunnels} lines={8}>
            {(list) => <Overview tunnels={list} />}
          </QueryContent>
        </>
      )}
      <CommandLine
        commands={["tunnels", "logs"]}
        requests={[
          { label: "Tunnels and traffic of the last 24 hours", path: "/metrics" },
          { label: "The connected agents", path: "/connections" },
        ]}
      />
    </PageFrame>
  );
}

function Overview({ tunnels }: { tunnels: readonly Tunnel[] }) {
  if (tunnels.length === 0) {
    return (
      <>
        <FirstTunnel>This page then shows it, without a reload.</FirstTunnel>
        <FirstSteps tunnels={tunnels} />
      </>
    );
  }
  return (
    <>
      <TrafficFigures tunnels={tunnels} />
      <FirstSteps tunnels={tunnels} />
      <ConnectedSection tunnels={tunnels} />
      <FailureSection tunnels={tunnels} />
      <MonthAndPlan />
    </>
  );
}
