/** The commands with which a new token is used. The token itself is in an environment variable, as in the first one. */
import { DEFAULT_PROJECT_SLUG } from "../../../../protocol/names.ts";
import type { MintedToken } from "../../../../protocol/schemas/tokens.ts";
import { formatAgentCommand } from "../../../ui/text/agent-command.ts";

interface TokenCommand {
  /** Says what the command does. */
  title: string;
  command: string;
}

export function getTokenCommands(token: MintedToken): TokenCommand[] {
  return token.kind === "master" ? getMasterKeyCommands() : getAgentCommands(token);
}

function getMasterKeyCommands(): TokenCommand[] {
  const header = '-H "Authorization: Bearer $UNDERPASS_ACCESS_TOKEN"';
  const url = `${location.origin}/projects/${DEFAULT_PROJECT_SLUG}/tokens`;
  return [
    {
      title: "Paste the key into this shell, outside of its history",
      command: "read -rs UNDERPASS_ACCESS_TOKEN && export UNDERPASS_ACCESS_TOKEN",
    },
    {
      title: "Mint a token with the agent",
      command: formatAgentCommand(
        `tokens mint ci --project ${DEFAULT_PROJECT_SLUG} --output ci.token`,
      ),
    },
    {
      title: "Mint a token through the API",
      command: `curl ${url} ${header} -H "Content-Type: application/json" -d '{"name":"ci"}'`,
    },
  ];
}

function getAgentCommands(token: MintedToken): TokenCommand[] {
  const { allowedSubdomains, projectSlug, monthlyBudgetUsdCents } = token;
  const canOpenTunnels = monthlyBudgetUsdCents !== 0;
  const isRestricted = allowedSubdomains.length > 0 || projectSlug !== null;
  const commands: TokenCommand[] = [
    {
      title:
        "Paste it into this shell, outside of its history; in CI, make it a secret of that name",
      command: "read -rs UNDERPASS_TOKEN && export UNDERPASS_TOKEN",
    },
  ];
  if (canOpenTunnels) {
    commands.push({ title: "Open a tunnel", command: getTunnelCommand(token) });
  } else {
    commands.push({
      title: "Follow the requests",
      command: formatAgentCommand("logs"),
    });
  }
  if (!isRestricted) {
    const path = canOpenTunnels ? "/tunnels" : "/metrics/prometheus";
    commands.push({
      title: canOpenTunnels ? "List the tunnels through the API" : "Read the metrics",
      command: `curl ${location.origin}${path} -H "Authorization: Bearer $UNDERPASS_TOKEN"`,
    });
  }
  return commands;
}

/** Opens a tunnel with the first allowed name, in which a 1 stands for each wildcard. */
function getTunnelCommand({ allowedSubdomains, projectSlug }: MintedToken): string {
  const [pattern] = allowedSubdomains;
  const suffix =
    projectSlug === null || projectSlug === DEFAULT_PROJECT_SLUG ? "" : `-${projectSlug}`;
  const label = pattern?.endsWith(suffix)
    ? pattern.slice(0, pattern.length - suffix.length)
    : pattern;
  const name = label?.replaceAll("*", "1").replaceAll(/^-+|-+$/g, "") ?? "";
  const args = [
    "http 3000",
    ...(name === "" ? [] : [`--subdomain ${name}`]),
    ...(projectSlug === null ? [] : [`--project ${projectSlug}`]),
  ];
  return formatAgentCommand(args.join(" "));
}
