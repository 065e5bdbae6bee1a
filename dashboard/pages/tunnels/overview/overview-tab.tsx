/** The tab with the state of a tunnel and what it is connected to. */
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { findLocalPort } from "../../../../protocol/local-server.ts";
import { getTunnelState } from "../../../api/tunnels.ts";
import { CommandLine } from "../../../ui/command-line.tsx";
import { useHasRole } from "../../../app/roles.ts";
import { formatAgentCommand, getSetupCommands } from "../../../ui/text/agent-command.ts";
import { Command } from "../../../ui/copy.tsx";
import { Fact, Facts } from "../../../ui/facts.tsx";
import { formatBytes, formatCount } from "../../../ui/numbers.ts";
import { Section } from "../../../ui/section.tsx";
import { RelativeTime } from "../../../ui/time.tsx";
import { getServeArguments } from "../agent-command.ts";
import { useLocalServers } from "../local-server.ts";
import { LastSeen } from "../last-seen.tsx";
import { PROTOCOL_NAMES } from "../protocol-names.ts";
import { GateBadges, hasGates, STATE_TEXTS } from "../tunnel-badges.tsx";
import { AgentsSection } from "./agents-section.tsx";
import { CustomDomainsSection } from "./custom-domains-section.tsx";

export function OverviewTab({ tunnel }: { tunnel: Tunnel }) {
  const state = getTunnelState(tunnel);
  const [address] = useLocalServers(tunnel);
  const canConnect = useHasRole("member");
  return (
    <>
      <StateSection tunnel={tunnel} />
      {canConnect && (state === "inactive" || state === "offline") && (
        <ConnectSection tunnel={tunnel} />
      )}
      <AgentsSection tunnel={tunnel} />
      {tunnel.protocol !== "tcp" && <CustomDomainsSection tunnel={tunnel} />}
      <CommandLine
        commands={[`tunnels show ${tunnel.subdomain}`]}
        changes={[getServeArguments(tunnel, address)]}
        requests={[
          { label: "All tunnels", path: "/tunnels" },
          { label: "All connected agents", path: "/connections" },
        ]}
      />
    </>
  );
}

function StateSection({ tunnel }: { tunnel: Tunnel }) {
  const { protocol, totalRequests, bytesIn, bytesOut, expiresAt, projectSlug } = tunnel;
  return (
    <Section title="State">
      <p>{STATE_TEXTS[getTunnelState(tunnel)].explanation}</p>
      <Facts>
        <Fact name="Local server">
          <LocalServer tunnel={tunnel} />
        </Fact>
        <Fact name={protocol === "tcp" ? "Connections" : "Requests"}>
          {formatCount(totalRequests)}
        </Fact>
        <Fact name="Received from visitors">{formatBytes(bytesIn)}</Fact>
        <Fact name="Sent to visitors">{formatBytes(bytesOut)}</Fact>
        <Fact name="Last seen">
          <LastSeen tunnel={tunnel} />
        </Fact>
        <Fact name="Expires">
          {expiresAt === null ? "never" : <RelativeTime timestamp={expiresAt} />}
        </Fact>
        <Fact name="Project">{projectSlug}</Fact>
        <Fact name="Gates">
          <Gates tunnel={tunnel} />
        </Fact>
      </Facts>
    </Section>
  );
}

/** The addresses of connected agents, or else the port that the last one had. */
function LocalServer({ tunnel }: { tunnel: Tunnel }) {
  const addresses = useLocalServers(tunnel);
  const port = findLocalPort(tunnel);
  const texts = addresses.length === 0 && port !== null ? [`port ${port}`] : addresses;
  return [PROTOCOL_NAMES[tunnel.protocol], ...texts].join(", ");
}

function Gates({ tunnel }: { tunnel: Tunnel }) {
  return hasGates(tunnel) ? <GateBadges tunnel={tunnel} /> : "none: open to everyone";
}

/** The tunnel is loaded every few seconds, so the section disappears as soon as the agent connects. */
function ConnectSection({ tunnel }: { tunnel: Tunnel }) {
  return (
    <Section title="Connect an agent">
      <p>Run this on the machine with the local server. The page shows the connection at once.</p>
      <Command>{formatAgentCommand(getServeArguments(tunnel))}</Command>
      <details className="command-line">
        <summary>On a machine that has not logged in yet</summary>
        <p className="hint">Run this before:</p>
        <div className="commands">
          {getSetupCommands().map((command) => (
            <Command key={command}>{command}</Command>
          ))}
        </div>
      </details>
    </Section>
  );
}
