/** /tunnels/:id: one tunnel. The selected tab is in the URL. */
import { Link } from "@tanstack/react-router";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { getTunnelState, useTunnel } from "../../api/tunnels.ts";
import { useHasRole } from "../../app/roles.ts";
import {
  usePathId,
  useQueryParameters,
  useSetQueryParameters,
} from "../../app/query-parameters.ts";
import { ActionButton } from "../../ui/button.tsx";
import { MissingResource } from "../../ui/feedback/missing-resource.tsx";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { PageFrame } from "../../ui/page.tsx";
import { Tabs, type Tab } from "../../ui/tabs.tsx";
import { AccessTab } from "./access/access-tab.tsx";
import { CapturingTab } from "./capturing/capturing-tab.tsx";
import { useTunnelControls } from "./use-tunnel-controls.ts";
import { MaintenanceTab } from "./maintenance/maintenance-tab.tsx";
import { OverviewTab } from "./overview/overview-tab.tsx";
import { PolicyTab } from "./policy/policy-tab.tsx";
import { PublicAddress } from "./public-address.tsx";
import { SettingsTab } from "./settings-tab.tsx";
import { StateBadge } from "./tunnel-badges.tsx";
import "./tunnels.css";

export function Page() {
  const query = useTunnel(usePathId());
  const tunnel = query.data ?? null;
  const tab = useSelectedTab(tunnel);
  return (
    <PageFrame
      title={tunnel?.name ?? "Tunnel"}
      documentTitle={tunnel && tab ? `${tunnel.name}: ${tab.title}` : undefined}
      about={
        tunnel === null ? undefined : (
          <span className="tunnel-summary">
            <StateBadge tunnel={tunnel} />
            <PublicAddress tunnel={tunnel} />
          </span>
        )
      }
      actions={tunnel === null ? undefined : <HeaderActions tunnel={tunnel} />}
    >
      <QueryContent query={query} lines={8}>
        {(found) => (found === null ? <NotFound /> : <TunnelTabs tunnel={found} />)}
      </QueryContent>
    </PageFrame>
  );
}

function NotFound() {
  return (
    <MissingResource id={usePathId()} kind="tunnel" title="This tunnel does not exist">
      <p>It may have been deleted.</p>
      <Link to="/tunnels" className="button">
        Show all tunnels
      </Link>
    </MissingResource>
  );
}

function HeaderActions({ tunnel }: { tunnel: Tunnel }) {
  const { stop, start } = useTunnelControls();
  const canChange = useHasRole("member");
  const state = getTunnelState(tunnel);
  return (
    <>
      {tunnel.protocol !== "tcp" && (
        <Link to="/requests" search={{ tunnel_id: tunnel.id }} className="button">
          Requests
        </Link>
      )}
      <Link to="/metrics" search={{ tunnel_id: tunnel.id }} className="button">
        Metrics
      </Link>
      {canChange &&
        state !== "expired" &&
        (state === "stopped" ? (
          <ActionButton kind="primary" action={() => start(tunnel)}>
            Start
          </ActionButton>
        ) : (
          <ActionButton action={() => stop(tunnel)}>Stop</ActionButton>
        ))}
    </>
  );
}

function TunnelTabs({ tunnel }: { tunnel: Tunnel }) {
  const setParameters = useSetQueryParameters();
  return (
    <Tabs
      label={`Views of ${tunnel.name}`}
      selected={useSelectedTab(tunnel)?.id}
      onSelect={(next) => setParameters({ tab: next }, { isNewEntry: true })}
      tabs={getTabs(tunnel)}
    />
  );
}

/** The tab that the URL names; undefined: the first one. */
function useSelectedTab(tunnel: Tunnel | null): TunnelTab | undefined {
  const { tab } = useQueryParameters();
  return tunnel === null ? undefined : getTabs(tunnel).find(({ id }) => id === tab);
}

type TunnelTab = Tab & { title: string };

/** TCP tunnels have no settings for HTTP. */
function getTabs(tunnel: Tunnel): TunnelTab[] {
  const overview = { id: "overview", title: "Overview", content: <OverviewTab tunnel={tunnel} /> };
  const access = { id: "access", title: "Access", content: <AccessTab tunnel={tunnel} /> };
  const settings = { id: "settings", title: "Settings", content: <SettingsTab tunnel={tunnel} /> };
  if (tunnel.protocol === "tcp") return [overview, access, settings];
  return [
    overview,
    access,
    { id: "policy", title: "Policy", content: <PolicyTab tunnel={tunnel} /> },
    { id: "maintenance", title: "Maintenance", content: <MaintenanceTab tunnel={tunnel} /> },
    { id: "capturing", title: "Capture", content: <CapturingTab tunnel={tunnel} /> },
    settings,
  ];
}
