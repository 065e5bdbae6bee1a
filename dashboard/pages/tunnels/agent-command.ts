/** The commands that serve a tunnel. */
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { DEFAULT_PROJECT_SLUG } from "../../../protocol/names.ts";

/** The arguments of `underpass` for an agent that serves the tunnel. */
export function getServeArguments({ name, protocol, localPort, projectSlug }: Tunnel): string {
  const target = protocol === "https" ? `https://localhost:${localPort}` : localPort;
  const project = projectSlug === DEFAULT_PROJECT_SLUG ? "" : ` --project ${projectSlug}`;
  return `${protocol === "tcp" ? "tcp" : "http"} ${target} --subdomain ${name}${project}`;
}
