/** How to do on a command line what a view does: with the agent's commands, and with requests to the API. */
import { Command } from "./copy.tsx";
import { formatAgentCommand } from "./text/agent-command.ts";
import { quoteForShell } from "./text/shell.ts";

export interface ApiRequest {
  /** Says what the request does, when there are several. */
  label?: string;
  method?: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  body?: unknown;
}

export interface CommandLineProps {
  /** Arguments of `underpass`. The server is added. */
  commands?: readonly string[];
  requests?: readonly ApiRequest[];
}

/** Closed until the user opens it. */
export function CommandLine({ commands = [], requests = [] }: CommandLineProps) {
  return (
    <details className="command-line">
      <summary>Do this on the command line</summary>
      {commands.map((args) => (
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
