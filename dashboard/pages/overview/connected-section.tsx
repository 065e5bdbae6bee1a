/** The tunnels that agents serve now. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Connection } from "../../../protocol/schemas/tunnels/connections.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { connectionsQuery } from "../../api/connections.ts";
import { useHasRole } from "../../app/roles.ts";
import { formatAgentCommand } from "../../ui/text/agent-command.ts";
import { Command, CopyButton } from "../../ui/copy.tsx";
import { formatCount } from "../../ui/numbers.ts";
import { getAddress, getServeArguments } from "../tunnels/agent-command.ts";
import { StateBadge } from "../tunnels/tunnel-badges.tsx";
import { Detail, Row, Rows, Section } from "../../ui/section.tsx";
import { RelativeTime } from "../../ui/time.tsx";

/** More are on the page of the tunnels. */
const ROWS_MAX = 8;

export function ConnectedSection({ tunnels }: { tunnels: readonly Tunnel[] }) {
  const { data: connections = [] } = useQuery(connectionsQuery);
  const connected = tunnels.filter(({ agentConnected }) => agentConnected);
  const hidden = connected.length - ROWS_MAX;
  return (
    <Section title="Connected now" actions={<Link to="/tunnels">All tunnels</Link>}>
      {connected.length === 0 ? (
        <NoneConnected tunnel={tunnels[0]} />
      ) : (
        <Rows>
          {connected.slice(0, ROWS_MAX).map((tunnel) => (
            <TunnelRow
              key={tunnel.id}
              tunnel={tunnel}
              connection={connections.find((one) => one.tunnels.includes(tunnel.id))}
            />
          ))}
        </Rows>
      )}
      {hidden > 0 && <p className="hint more">and {formatCount(hidden)} more</p>}
    </Section>
  );
}

/** @param tunnel the newest one, if there is any. */
function NoneConnected({ tunnel }: { tunnel: Tunnel | undefined }) {
  if (!useHasRole("member")) return <p className="hint">No agent is connected.</p>;
  const serve = tunnel ? getServeArguments(tunnel) : "http 3000";
  return (
    <>
      <p className="hint">No agent is connected. To connect one, run:</p>
      <Command>{formatAgentCommand(serve)}</Command>
    </>
  );
}

interface TunnelRowProps {
  tunnel: Tunnel;
  /** undefined while it is not known yet. */
  connection: Connection | undefined;
}

function TunnelRow({ tunnel, connection }: TunnelRowProps) {
  const { id, name } = tunnel;
  const address = getAddress(tunnel);
  const isWebsite = address.startsWith("http");
  return (
    <Row actions={<CopyButton text={address} label={`Copy the URL of ${name}`} />}>
      <strong>
        <Link to="/tunnels/$id" params={{ id }}>
          {name}
        </Link>
      </strong>
      <StateBadge tunnel={tunnel} />
      <Detail>
        {isWebsite ? (
          <a href={address} target="_blank" rel="noopener noreferrer">
            {address}
          </a>
        ) : (
          address
        )}
        {connection && (
          <>
            {" "}
            · agent at {connection.remote_ip}, connected{" "}
            <RelativeTime timestamp={connection.connected_at} />
          </>
        )}
      </Detail>
    </Row>
  );
}
