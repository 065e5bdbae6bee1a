/** /tunnels: the tunnels of the organization. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { tunnelsQuery } from "../../api/tunnels.ts";
import { useHasRole } from "../../app/roles.ts";
import { useQueryParameters } from "../../app/query-parameters.ts";
import { CommandLine } from "../../ui/command-line.tsx";
import { EmptyState } from "../../ui/feedback/empty-state.tsx";
import { FirstTunnel } from "../../ui/feedback/first-tunnel.tsx";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { formatCount, formatQuantity } from "../../ui/numbers.ts";
import { PageFrame } from "../../ui/page.tsx";
import { ShowMore } from "../../ui/show-more.tsx";
import { CreateTunnelButton } from "./list/create-tunnel.tsx";
import { getTunnelOrder, matchesFilter, sortTunnels } from "./list/tunnel-filter.ts";
import { TunnelFilterBar } from "./list/tunnel-filter-bar.tsx";
import { TunnelTable } from "./list/tunnel-table.tsx";
import "./tunnels.css";

/** How many rows are shown at first, and added by each click. */
const PAGE_ROWS = 100;

export function Page() {
  const tunnels = useQuery(tunnelsQuery);
  const canChange = useHasRole("member");
  return (
    <PageFrame
      title="Tunnels"
      about="Public addresses of servers on your machines."
      width="wide"
      actions={canChange ? <CreateTunnelButton /> : undefined}
    >
      <QueryContent query={tunnels} lines={8}>
        {(list) => (list.length === 0 ? <NoTunnels /> : <TunnelList tunnels={list} />)}
      </QueryContent>
    </PageFrame>
  );
}

/** The tunnels are loaded every few seconds, so the page shows the first one as soon as its agent connects. */
function NoTunnels() {
  return <FirstTunnel>The tunnel then appears here at once.</FirstTunnel>;
}

function TunnelList({ tunnels }: { tunnels: readonly Tunnel[] }) {
  const { text, state, project, order: orderValue } = useQueryParameters();
  const [maxRows, setMaxRows] = useState(PAGE_ROWS);
  const projects = [...new Set(tunnels.map(({ projectSlug }) => projectSlug))].sort();
  const found = tunnels.filter((tunnel) => matchesFilter(tunnel, { text, state, project }));
  const order = getTunnelOrder(orderValue);
  const rest = found.length - maxRows;
  return (
    <>
      <TunnelFilterBar projects={projects} />
      <p className="hint tunnel-count" aria-live="polite">
        {found.length === tunnels.length
          ? formatQuantity(tunnels.length, "tunnel")
          : `${formatCount(found.length)} of ${formatQuantity(tunnels.length, "tunnel")}`}
      </p>
      {found.length === 0 ? (
        <EmptyState title="No tunnel matches the filter" />
      ) : (
        <TunnelTable tunnels={sortTunnels(found, order).slice(0, maxRows)} order={order.label} />
      )}
      <ShowMore
        hiddenCount={rest}
        step={PAGE_ROWS}
        onShow={() => setMaxRows(maxRows + PAGE_ROWS)}
      />
      <CommandLine commands={[getListArguments(state)]} requests={[{ path: "/tunnels" }]} />
    </>
  );
}

/** The command has no filter for maintenance, which is not a state of its own there. */
function getListArguments(state: string | undefined): string {
  return state === undefined || state === "maintenance" ? "tunnels" : `tunnels --state ${state}`;
}
