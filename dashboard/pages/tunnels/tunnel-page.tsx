/** /tunnels/:id: one tunnel. The selected tab is in the URL. */
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { useTunnel } from "../../api/tunnels.ts";
import { usePathId, useQueryParameters, useSetQueryParameters } from "../../app/search.ts";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { PageFrame } from "../../ui/page.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { PolicyTab } from "./policy/policy-tab.tsx";

export function Page() {
  const tunnel = useTunnel(usePathId());
  return (
    <PageFrame title={tunnel.data?.name ?? "Tunnel"} about={tunnel.data?.publicUrl}>
      <QueryContent query={tunnel} lines={8}>
        {(found) => (found === undefined ? null : <TunnelTabs tunnel={found} />)}
      </QueryContent>
    </PageFrame>
  );
}

function TunnelTabs({ tunnel }: { tunnel: Tunnel }) {
  const { tab } = useQueryParameters();
  const setParameters = useSetQueryParameters();
  return (
    <Tabs
      label="Views of the tunnel"
      selected={tab}
      onSelect={(next) => setParameters({ tab: next })}
      tabs={[
        { id: "overview", title: "Overview", content: null },
        { id: "access", title: "Access", content: null },
        { id: "policy", title: "Policy", content: <PolicyTab tunnel={tunnel} /> },
        { id: "maintenance", title: "Maintenance", content: null },
        { id: "capturing", title: "Capturing", content: null },
        { id: "settings", title: "Settings", content: null },
      ]}
    />
  );
}
