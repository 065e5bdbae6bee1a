/** The commands that serve a tunnel, and reach it. */
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { findLocalPort } from "../../../protocol/local-server.ts";
import { DEFAULT_PROJECT_SLUG } from "../../../protocol/names.ts";
import { getAgentProgram } from "../../ui/text/agent-command.ts";
import { quoteForShell } from "../../ui/text/shell.ts";

/** Stands for a port that the user fills in. */
const UNKNOWN_PORT = "PORT";

/**
 * The arguments of `underpass` for an agent that serves the tunnel.
 * @param address the local server of a connected agent, as the agent prints it. Default: the tunnel's port on this machine.
 */
export function getServeArguments(tunnel: Tunnel, address?: string): string {
  const { name, protocol, projectSlug } = tunnel;
  const port = findLocalPort(tunnel) ?? UNKNOWN_PORT;
  const local = protocol === "https" ? `https://localhost:${port}` : `${port}`;
  const target = address !== undefined && isArgument(address) ? toArgument(address) : local;
  const project = projectSlug === DEFAULT_PROJECT_SLUG ? "" : ` --project ${projectSlug}`;
  const isPrivate = isPrivateTunnel(tunnel) ? " --private" : "";
  return `${protocol === "tcp" ? "tcp" : "http"} ${target} --subdomain ${name}${project}${isPrivate}`;
}

/** Whether it is an address or a path, and not the name of a function in a program. */
function isArgument(address: string): boolean {
  return /[:/]/.test(address);
}

/** A port alone is one of this machine. */
function toArgument(address: string): string {
  return quoteForShell(address.replace(/^(?:http:\/\/)?localhost:(?=\d+$)/, ""));
}

/** How a visitor reaches the tunnel: its URL, or the command that connects to a private one. */
export function getAddress(tunnel: Tunnel): string {
  return isPrivateTunnel(tunnel)
    ? `${getAgentProgram()} connect ${tunnel.subdomain}`
    : tunnel.publicUrl;
}

/** Whether the tunnel has no public port. */
function isPrivateTunnel({ protocol, publicPort }: Tunnel): boolean {
  return protocol === "tcp" && publicPort === null;
}
