/** How to do on a command line what a view does: with the agent's commands, and with requests to the API. */
import type { Role } from "../../protocol/roles.ts";
import { includesRole } from "../app/roles.ts";
import { useMe } from "../app/session-state.ts";
import { Command } from "./copy.tsx";
import { formatAgentCommand } from "./text/agent-command.ts";
import { quoteForShell } from "./text/shell.ts";

export interface ApiRequest {
  /** Says what the request does, when there are several. */
  label?: string;
  method?: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  body?: unknown;
  /** Who may send it: by default everyone may read, and members may change. */
  lowestRole?: Role;
}

interface CommandLineProps {
  /** Arguments of `underpass`. The server is added. */
  commands?: readonly string[];
  /** The same, for what only members may do. */
  changes?: readonly string[];
  requests?: readonly ApiRequest[];
}

/** Closed until the user opens it. It has what the user's role may do. */
export function CommandLine({ commands = [], changes = [], requests: all = [] }: CommandLineProps) {
  const { role } = useMe().active_org;
  const shown = includesRole(role, "member") ? [...commands, ...changes] : commands;
  const requests = all.filter((request) => includesRole(role, getLowestRole(request)));
  if (shown.length === 0 && requests.length === 0) return null;
  return (
    <details className="command-line">
      <summary>Do this on the command line</summary>
      {shown.map((args) => (
        <Command key={args}>{formatAgentCommand(args)}</Command>
      ))}
      {requests.map((request) => (
        <div key={`${request.method} ${request.path}`}>
          {request.label !== undefined && <p className="hint">{request.label}</p>}
          <Command label={`Copy the request ${request.method ?? "GET"} ${getRoute(request)}`}>
            {formatCurlCommand(request)}
          </Command>
        </div>
      ))}
      {requests.length > 0 && (
        <p className="hint">
          <code>UNDERPASS_ACCESS_TOKEN</code> holds an access token of your account, as{" "}
          <code>POST /auth/login</code> returns it. <a href="/docs">All routes of the API</a>
        </p>
      )}
    </details>
  );
}

function getLowestRole({ method = "GET", lowestRole }: ApiRequest): Role {
  return lowestRole ?? (method === "GET" ? "viewer" : "member");
}

/** Without the query, which can contain any text that the user has searched for. */
function getRoute({ path }: ApiRequest): string {
  return path.replace(/\?.*$/, "");
}

function formatCurlCommand({ method = "GET", path, body }: ApiRequest): string {
  const parts = [
    "curl",
    ...(method === "GET" ? [] : ["-X", method]),
    '-H "Authorization: Bearer $UNDERPASS_ACCESS_TOKEN"',
    ...(body === undefined
      ? []
      : ["-H 'Content-Type: application/json'", "-d", quoteForShell(JSON.stringify(body))]),
    quoteForShell(location.origin + path),
  ];
  return parts.join(" ");
}
