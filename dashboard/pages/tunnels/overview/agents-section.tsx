/** The agents that are connected to a tunnel now. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { TunnelAgent } from "../../../../protocol/schemas/tunnels/connections.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { tunnelAgentsQuery } from "../../../api/connections.ts";
import { call } from "../../../api/session.ts";
import { useHasRole } from "../../../app/roles.ts";
import { ActionButton } from "../../../ui/button.tsx";
import { notify } from "../../../ui/feedback/notifications.tsx";
import { QueryContent } from "../../../ui/feedback/query-content.tsx";
import { Detail, Row, Rows, Section } from "../../../ui/section.tsx";
import { RelativeTime } from "../../../ui/time.tsx";

export function AgentsSection({ tunnel }: { tunnel: Tunnel }) {
  const agents = useQuery(tunnelAgentsQuery(tunnel.id));
  return (
    <Section title="Connected agents">
      <QueryContent query={agents} lines={1}>
        {(list) =>
          list.length === 0 ? (
            <p>No agent is connected.</p>
          ) : (
            <Rows>
              {list.map((agent) => (
                <AgentRow key={agent.agent_id} agent={agent} tunnel={tunnel} />
              ))}
            </Rows>
          )
        }
      </QueryContent>
    </Section>
  );
}

function AgentRow({ agent, tunnel }: { agent: TunnelAgent; tunnel: Tunnel }) {
  const { agent_id: id, remote_ip: address, connected_at: since, healthy } = agent;
  const queries = useQueryClient();
  const canDisconnect = useHasRole("admin");
  const disconnect = (
    <ActionButton
      aria-label={`Disconnect the agent at ${address}`}
      action={async () => {
        await call("DELETE", `/connections/${id}`);
        await queries.invalidateQueries(tunnelAgentsQuery(tunnel.id));
        notify("The agent was disconnected. It reconnects in about five seconds.");
      }}
    >
      Disconnect
    </ActionButton>
  );
  return (
    <Row actions={canDisconnect ? disconnect : undefined}>
      <strong>{address}</strong>
      <Detail>
        Connected <RelativeTime timestamp={since} /> · {agent.in_flight} in flight · connection{" "}
        <code>{id.slice(0, 8)}</code>
      </Detail>
      {!healthy && <Detail>Its local server refuses connections.</Detail>}
    </Row>
  );
}
