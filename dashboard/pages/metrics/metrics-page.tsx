/** /metrics: the traffic of the tunnels over time, what became of it, and what it costs. */
import { useQuery } from "@tanstack/react-query";
import {
  breakdownQuery,
  getBreakdownPath,
  getSeriesPath,
  type TrafficSelection,
} from "../../api/metrics.ts";
import { isNotFound } from "../../api/request.ts";
import { tunnelsQuery } from "../../api/tunnels.ts";
import { useMe } from "../../app/session-state.ts";
import { useQueryParameters, useSetQueryParameters } from "../../app/query-parameters.ts";
import { CommandLine } from "../../ui/command-line.tsx";
import { FirstTunnel } from "../../ui/feedback/first-tunnel.tsx";
import { MissingResource } from "../../ui/feedback/missing-resource.tsx";
import { Skeleton } from "../../ui/feedback/skeleton.tsx";
import { PageFrame } from "../../ui/page.tsx";
import { SegmentedControl } from "../../ui/forms/segmented-control.tsx";
import { TunnelChoice } from "../../ui/forms/tunnel-choice.tsx";
import { BreakdownSections } from "./breakdown-sections.tsx";
import "./metrics.css";
import { parseMetric, TrafficSection } from "./traffic-section.tsx";
import { UsageSection } from "./usage-section.tsx";
import { parseWindow, WINDOW_CHOICES } from "./windows.ts";

export function Page() {
  const { active_org: organization } = useMe();
  const parameters = useQueryParameters();
  const setParameters = useSetQueryParameters();
  const selection: TrafficSelection = {
    window: parseWindow(parameters.window),
    tunnelId: parameters.tunnel_id ?? "",
  };
  const { data: tunnels, isPending } = useQuery(tunnelsQuery);
  const isUnknownTunnel = isNotFound(useQuery(breakdownQuery(selection)).error);
  const choices = (
    <>
      <TunnelChoice
        tunnels={tunnels ?? []}
        tunnelId={selection.tunnelId}
        onChoose={(id) => setParameters({ tunnel_id: id })}
      />
      <SegmentedControl
        label="Period"
        value={selection.window}
        choices={WINDOW_CHOICES}
        onChoose={(window) => setParameters({ window })}
      />
    </>
  );
  return (
    <PageFrame title="Metrics" about={organization.name} actions={choices}>
      {isPending ? (
        <Skeleton lines={12} />
      ) : tunnels?.length === 0 && selection.tunnelId === "" ? (
        <FirstTunnel title="No tunnel has had visitors yet">
          Charts appear here when a tunnel has visitors.
        </FirstTunnel>
      ) : isUnknownTunnel ? (
        <MissingResource id={selection.tunnelId} kind="tunnel" title="This tunnel does not exist">
          <p>It may have been deleted.</p>
        </MissingResource>
      ) : (
        <>
          <TrafficSection selection={selection} />
          <BreakdownSections selection={selection} />
        </>
      )}
      <UsageSection />
      <CommandLine
        requests={[
          {
            label: "One metric over time",
            path: getSeriesPath(parseMetric(parameters.metric), selection),
          },
          { label: "The breakdown", path: getBreakdownPath(selection) },
          { label: "All counters, for Prometheus", path: "/metrics/prometheus" },
        ]}
      />
    </PageFrame>
  );
}
