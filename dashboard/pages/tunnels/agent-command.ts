/** The commands that serve a tunnel, and reach it. */
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { DEFAULT_PROJECT_SLUG } from "../../../protocol/names.ts";

/** The arguments of `underpass` for an agent that serves the tunnel. */
export function getServeArguments(tunnel: Tunnel): string {
  const { name, protocol, localPort, projectSlug } = tunnel;
  const target = protocol === "https" ? `https://localhost:${localPort}` : localPort;
  const project = projectSlug === DEFAULT_PROJECT_SLUG ? "" : ` --project ${projectSlug}`;
  const isPrivate = isPrivateTunnel(tunnel) ? " --private" : "";
  return `${protocol === "tcp" ? "tcp" : "http"} ${target} --subdomain ${name}${project}${isPrivate}`;
}

/** How a visitor reaches the tunnel: its URL, or the command that connects to a private one. */
export function getAddress(tunnel: Tunnel): string {
  return isPrivateTunnel(tunnel) ? `underpass connect ${tunnel.subdomain}` : tunnel.publicUrl;
}

/** Whether the tunnel has no public port. */
function isPrivateTunnel({ protocol, publicPort }: Tunnel): boolean {
  return protocol === "tcp" && publicPort === null;
}
