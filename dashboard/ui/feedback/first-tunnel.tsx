/** The content of a page that needs a tunnel before it has data: the commands that open the first one. */
import type { ReactNode } from "react";
import { formatInstallCommand } from "../../../protocol/version.ts";
import { useHasRole } from "../../app/roles.ts";
import { getAgentProgram, getSetupCommands, isServerLocal } from "../text/agent-command.ts";
import { Command } from "../copy.tsx";
import { EmptyState } from "./empty-state.tsx";

interface FirstTunnelProps {
  /** By default the page is about tunnels. */
  title?: string;
  /** What happens here then. */
  children: ReactNode;
}

/** A viewer, who can't open tunnels, has no commands. */
export function FirstTunnel({ title, children }: FirstTunnelProps) {
  if (!useHasRole("member")) {
    return (
      <EmptyState title={title ?? "No tunnels yet"}>
        <p>Members of the organization open tunnels. {children}</p>
      </EmptyState>
    );
  }
  // The agent uses the server of its last login.
  const commands = [...getSetupCommands(), `${getAgentProgram()} http 3000`];
  return (
    <EmptyState
      title={title ?? "Open your first tunnel"}
      commands={commands}
      footer={isServerLocal() && <OtherDirectories />}
    >
      <p>
        {isServerLocal() ? (
          <>
            Run these in the directory in which you ran <code>npm start</code>, to share port 3000
            of this machine.
          </>
        ) : (
          "Run these on the machine whose port 3000 you want to share. They need Node.js."
        )}{" "}
        {children}
      </p>
    </EmptyState>
  );
}

function OtherDirectories() {
  return (
    <details className="command-line">
      <summary>In other directories</summary>
      <p className="hint">Install the agent first. Then leave out npx:</p>
      <Command>{formatInstallCommand(location.origin)}</Command>
    </details>
  );
}
