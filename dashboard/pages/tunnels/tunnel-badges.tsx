/** Badges of a tunnel: its state, and the gates that its visitors pass. */
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { getTunnelState, type TunnelState } from "../../api/tunnels.ts";
import { formatQuantity } from "../../ui/numbers.ts";
import { Badge } from "../../ui/section.tsx";
import type { Tone } from "../../ui/figures/tone.ts";

interface StateText {
  label: string;
  tone: Tone;
  /** Says what visitors get. */
  explanation: string;
}

export const STATE_TEXTS: Record<TunnelState, StateText> = {
  active: {
    label: "Live",
    tone: "good",
    explanation: "An agent is connected, and visitors reach the local server.",
  },
  maintenance: {
    label: "Maintenance",
    tone: "warning",
    explanation: "Visitors get the maintenance page.",
  },
  inactive: {
    label: "Waiting",
    tone: "neutral",
    explanation:
      "No agent has connected since the tunnel was created or started. Visitors get an error page.",
  },
  offline: {
    label: "Offline",
    tone: "neutral",
    explanation: "The agent has disconnected. Visitors get an error page.",
  },
  stopped: {
    label: "Stopped",
    tone: "bad",
    explanation: "No agent is accepted until the tunnel is started.",
  },
  expired: {
    label: "Expired",
    tone: "neutral",
    explanation: "The tunnel has ended. A new one can use its name.",
  },
};

export function StateBadge({ tunnel }: { tunnel: Tunnel }) {
  const { label, tone, explanation } = STATE_TEXTS[getTunnelState(tunnel)];
  return (
    <span title={explanation}>
      <Badge tone={tone}>
        <span className="dot" aria-hidden="true" />
        {label}
      </Badge>
    </span>
  );
}

/** Shows nothing for a tunnel that is open to everyone. */
export function GateBadges({ tunnel }: { tunnel: Tunnel }) {
  return getGates(tunnel).map((gate) => <Badge key={gate}>{gate}</Badge>);
}

/** Whether any gate or rule decides about the tunnel's visitors. */
export function hasGates(tunnel: Tunnel): boolean {
  return getGates(tunnel).length > 0;
}

function getGates(tunnel: Tunnel): string[] {
  const { authEnabled, edgeAuthEnabled, allowedCidrs, policyActions } = tunnel;
  return [
    ...(allowedCidrs === null ? [] : ["IP allowlist"]),
    ...(authEnabled ? ["Password"] : []),
    ...(edgeAuthEnabled ? ["Sign-in"] : []),
    ...(policyActions === 0 ? [] : [formatQuantity(policyActions, "rule")]),
  ];
}
