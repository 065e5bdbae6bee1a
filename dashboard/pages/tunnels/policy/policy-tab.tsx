/** The tab with the traffic policy of a tunnel. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { useTunnel } from "../../../api/tunnels.ts";
import { CommandLine } from "../../../ui/command-line.tsx";
import { QueryContent } from "../../../ui/feedback/query-content.tsx";
import { getServeArguments } from "../agent-command.ts";
import { useLocalServers } from "../local-server.ts";
import { policyQuery } from "./policy-api.ts";
import { PolicyEditor } from "./policy-editor.tsx";
import "./policy.css";

interface PolicyTabProps {
  tunnel: Tunnel;
}

export function PolicyTab({ tunnel }: PolicyTabProps) {
  const query = useQuery(policyQuery(tunnel.id));
  const { dataUpdatedAt: tunnelLoadedAt } = useTunnel(tunnel.id);
  const queries = useQueryClient();
  // Another person may have changed the policy. After the user's own change the two differ only until both are updated.
  useEffect(() => {
    if (query.data === undefined) return;
    const count = query.data?.actions.length ?? 0;
    if (count !== tunnel.policyActions) void queries.invalidateQueries(policyQuery(tunnel.id));
  }, [tunnelLoadedAt]);
  const [address] = useLocalServers(tunnel);
  const body = { actions: [{ kind: "deny", path_prefix: "/admin" }] };
  const path = `/tunnels/${tunnel.id}/policy`;
  return (
    <>
      <QueryContent query={query} lines={10}>
        {(saved) => <PolicyEditor tunnel={tunnel} saved={saved} />}
      </QueryContent>
      <CommandLine
        changes={[`${getServeArguments(tunnel, address)} --policy-file policy.yml`]}
        requests={[
          { label: "Test a policy", method: "POST", path: `${path}/dry-run`, body },
          { label: "Set the policy", method: "PUT", path, body },
        ]}
      />
    </>
  );
}
