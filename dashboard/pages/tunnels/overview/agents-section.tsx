/** The agents that are connected to a tunnel now. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { Connection } from "../../../../protocol/schemas/tunnels/connections.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { connectionsQuery } from "../../../api/connections.ts";
import { call } from "../../../api/session.ts";
import { useHasRole } from "../../../app/roles.ts";
import { ActionButton } from "../../../ui/button.tsx";
import { notify } from "../../../ui/feedback/notifications.tsx";
import { QueryContent } from "../../../ui/feedback/query-content.tsx";
import { Detail, Row, Rows, Section } from "../../../ui/section.tsx";
import { RelativeTime } from "../../../ui/time.tsx";

export function AgentsSection({ tunnel }: { tunnel: Tunnel }) {
  const connections = useQuery({
    ...connectionsQuery,
    select: (all) => all.filter(({ tunnels }) => tunnels.includes(tunnel.id)),
  });
  return (
    <Section title="Connected agents">
      <QueryContent query={connections} lines={1}>
        {(list) =>
          list.length === 0 ? (
            <p>No agent is connected.</p>
          ) : (
            <Rows>
              {list.map((connection) => (
                <AgentRow key={connection.agent_id} connection={connection} />
              ))}
            </Rows>
          )
        }
      </QueryContent>
    </Section>
  );
}

function AgentRow({ connection }: { connection: Connection }) {
  const { agent_id: id, remote_ip: address, connected_at: since } = connection;
  const queries = useQueryClient();
  const canDisconnect = useHasRole("admin");
  const disconnect = (
    <ActionButton
      aria-label={`Disconnect the agent at ${address}`}
      action={async () => {
        await call("DELETE", `/connections/${id}`);
        await queries.invalidateQueries(connectionsQuery);
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
        Connected <RelativeTime timestamp={since} /> · connection <code>{id.slice(0, 8)}</code>
      </Detail>
    </Row>
  );
}
