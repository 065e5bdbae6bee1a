/** The state of a network at its relay, and what to do about each problem. */
import type { ReactNode } from "react";
import type { NetworkRelay, PrivateNetwork } from "../../../protocol/schemas/networks.ts";
import { useHasRole } from "../../app/roles.ts";
import { Command } from "../../ui/copy.tsx";
import { Fact, Facts } from "../../ui/facts.tsx";
import { formatMs, formatPercent } from "../../ui/numbers.ts";
import { Badge, Section } from "../../ui/section.tsx";
import { RelativeTime } from "../../ui/time.tsx";
import { formatServeCommand, getSetupCommandsOfRoot } from "./commands.ts";
import {
  findNetworkProblems,
  getNetworkHealth,
  isReachedDirectly,
  type NetworkProblem,
} from "./network-health.ts";
import { RegisterServerButton } from "./register-server.tsx";

const TRANSPORTS: Record<NetworkRelay["state"], string> = {
  offline: "none",
  udp: "UDP",
  websocket: "WebSocket",
};

export function HealthSection({ network }: { network: PrivateNetwork }) {
  const { tone, label } = getNetworkHealth(network);
  const { relay } = network;
  const hasRelay = network.server_public_key !== null && !isReachedDirectly(network);
  return (
    <Section title="State" actions={<Badge tone={tone}>{label}</Badge>}>
      {findNetworkProblems(network).map((problem) => (
        <Problem key={problem} problem={problem} network={network} />
      ))}
      {isReachedDirectly(network) && (
        <p>
          Devices reach the server at <code>{network.public_endpoint}</code>, without the relay. So
          handshakes and traffic are not known here: run <code>wg show</code> on the server.
        </p>
      )}
      {hasRelay && (
        <Facts>
          <Fact name="Agent to relay">{TRANSPORTS[relay.state]}</Fact>
          <Fact name="Latency">{relay.latency_ms === null ? "–" : formatMs(relay.latency_ms)}</Fact>
          <Fact name="Lost in the last minute">
            {relay.loss === null ? "–" : formatPercent(relay.loss)}
          </Fact>
          <Fact name="Last seen">
            {relay.last_seen_at === null ? (
              "never"
            ) : (
              <RelativeTime timestamp={relay.last_seen_at} />
            )}
          </Fact>
        </Facts>
      )}
    </Section>
  );
}

interface ProblemProps {
  problem: NetworkProblem;
  network: PrivateNetwork;
}

function Problem({ problem, network }: ProblemProps) {
  switch (problem) {
    case "no_server":
      return <SetUpServer network={network} />;
    case "offline":
      return (
        <Notice tone="bad" title="No agent serves the network">
          <p>Devices can't reach it. Run this on the server, and check what it prints:</p>
          <Command>{formatServeCommand(network.name)}</Command>
        </Notice>
      );
    case "not_listening":
      return (
        <Notice
          tone="bad"
          title={`Nothing is listening on port ${network.server_listen_port} of the server`}
        >
          <p>
            The agent is connected, but WireGuard does not run. On the server, check{" "}
            <code>wg show</code>, and bring the interface up with <code>wg-quick up</code>.
          </p>
        </Notice>
      );
    case "wrong_key":
      return (
        <Notice tone="warning" title="A device uses an earlier key of the server">
          <p>Its handshakes are refused. Remove that device and add it again.</p>
        </Notice>
      );
    case "websocket":
      return (
        <Notice tone="warning" title="UDP between the server and the relay is blocked">
          <p>
            Traffic passes over a WebSocket: it works, but is slower after packet losses. Allow
            outgoing UDP to the relay in the firewall of the server's network.
          </p>
        </Notice>
      );
    case "loss":
      return (
        <Notice tone="warning" title="Packets are lost between the server and the relay">
          <p>Check the server's internet connection, and its socket buffers.</p>
        </Notice>
      );
  }
}

interface NoticeProps {
  tone: "bad" | "warning";
  title: string;
  children: ReactNode;
}

function Notice({ tone, title, children }: NoticeProps) {
  return (
    <div className={`notice ${tone}`}>
      <h3>{title}</h3>
      {children}
    </div>
  );
}

function SetUpServer({ network }: { network: PrivateNetwork }) {
  if (!useHasRole("member")) return <p>A member of the organization sets up its server.</p>;
  return (
    <>
      <p>
        Make a machine the server of this network: run this on a Linux machine with WireGuard in the
        office or at home. It generates the keys there, and brings WireGuard up.
      </p>
      <div className="commands">
        {getSetupCommandsOfRoot().map((command) => (
          <Command key={command}>{command}</Command>
        ))}
        <Command>{formatServeCommand(network.name)}</Command>
      </div>
      <RegisterServerButton network={network} />
    </>
  );
}
