/**
 * The next steps in a new organization, until everything is done or the user hides the list. Without a tunnel the list has
 * no commands, because the page shows the command that opens the first tunnel above it.
 */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { metricsQuery } from "../../api/metrics.ts";
import { useHasRole } from "../../app/roles.ts";
import { useMe } from "../../app/session-state.ts";
import { Button } from "../../ui/button.tsx";
import { formatAgentCommand } from "../../ui/text/agent-command.ts";
import { Command } from "../../ui/copy.tsx";
import { Skeleton } from "../../ui/feedback/skeleton.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Section } from "../../ui/section.tsx";
import { getServeArguments } from "../tunnels/agent-command.ts";
import { hasGates } from "../tunnels/tunnel-badges.tsx";
import { membersCountQuery } from "./resource-counts.ts";
import { useHidden } from "./use-hidden.ts";

const EXAMPLE_PORT = 3000;

interface FirstStep {
  title: string;
  isDone: boolean;
  content: ReactNode;
}

export function FirstSteps({ tunnels }: { tunnels: readonly Tunnel[] }) {
  const { id } = useMe().active_org;
  const [canOpen, canInvite] = [useHasRole("member"), useHasRole("admin")];
  const { isHidden, hide } = useHidden(`underpass-first-steps-hidden ${id}`);
  const metrics = useQuery(metricsQuery);
  const members = useQuery(membersCountQuery(id));
  if (isHidden || !canOpen) return null;
  // These decide whether there is a list, which moves the sections below it.
  if (metrics.isLoading || members.isLoading) return <Skeleton lines={5} />;
  if (!metrics.data || members.data === undefined) return null;
  const hasTraffic =
    metrics.data.requests_last_24h > 0 || tunnels.some((one) => one.totalRequests > 0);
  const steps = [
    ...listTunnelSteps(tunnels, hasTraffic),
    ...(canInvite ? [createInvitationStep(members.data > 1)] : []),
  ];
  const current = steps.find(({ isDone }) => !isDone);
  if (!current) return null;

  const done = steps.filter(({ isDone }) => isDone).length;
  return (
    <Section
      title="First steps"
      actions={
        <>
          <span className="hint">
            {done} of {steps.length} done
          </span>
          <Button kind="quiet" onClick={() => hide("The first steps are hidden.")}>
            Hide
          </Button>
        </>
      }
    >
      <ol className="first-steps">
        {steps.map((step) => (
          <li key={step.title} className={step.isDone ? "done" : ""}>
            <span className="step-mark">{step.isDone && <Icon name="check" />}</span>
            <div>
              <strong>{step.title}</strong>
              {step.isDone && <span className="hidden-text"> (done)</span>}
              {step === current && tunnels.length > 0 && step.content}
            </div>
          </li>
        ))}
      </ol>
    </Section>
  );
}

function listTunnelSteps(tunnels: readonly Tunnel[], hasTraffic: boolean): FirstStep[] {
  const tunnel = findExample(tunnels);
  const isTcp = tunnel?.protocol === "tcp";
  const serve = tunnel ? getServeArguments(tunnel) : `http ${EXAMPLE_PORT}`;
  return [
    {
      title: "Open a tunnel",
      isDone: tunnels.some(({ lastSeenAt }) => lastSeenAt !== null),
      content: (
        <>
          <p className="hint">On the machine whose port you want to share:</p>
          <Command>{formatAgentCommand(serve)}</Command>
        </>
      ),
    },
    {
      title: "See its requests",
      isDone: hasTraffic,
      content: (
        <>
          <p className="hint">
            {isTcp ? "Open an HTTP tunnel, and watch its requests" : "Send a request, and watch it"}{" "}
            on the page <Link to="/requests">Requests</Link>:
          </p>
          <Command>
            {tunnel && !isTcp
              ? `curl ${tunnel.publicUrl}`
              : formatAgentCommand(isTcp ? `http ${EXAMPLE_PORT}` : "logs")}
          </Command>
        </>
      ),
    },
    {
      title: "Protect it",
      isDone: tunnels.some(hasGates),
      content: (
        <>
          <p className="hint">
            {isTcp
              ? "Admit only your addresses, or set them"
              : "Ask visitors for a password, or set it"}
            {tunnel ? (
              <>
                {" "}
                on the page of{" "}
                <Link to="/tunnels/$id" params={{ id: tunnel.id }} search={{ tab: "access" }}>
                  {tunnel.name}
                </Link>
              </>
            ) : (
              " on the page of the tunnel"
            )}
            :
          </p>
          <Command>
            {formatAgentCommand(
              `${serve} ${isTcp ? "--allow CIDR" : "--basic-auth NAME:PASSWORD"}`,
            )}
          </Command>
        </>
      ),
    },
  ];
}

/** @returns if there is one, an HTTP tunnel, whose requests are listed, and rather one with an agent. */
function findExample(tunnels: readonly Tunnel[]): Tunnel | undefined {
  const http = tunnels.filter(({ protocol }) => protocol !== "tcp");
  const candidates = http.length > 0 ? http : tunnels;
  return candidates.find(({ agentConnected }) => agentConnected) ?? candidates[0];
}

function createInvitationStep(isDone: boolean): FirstStep {
  return {
    title: "Invite people",
    isDone,
    content: (
      <p className="hint">
        Colleagues see the tunnels of the organization, and open their own.{" "}
        <Link to="/members">Invite a person</Link>
      </p>
    ),
  };
}
