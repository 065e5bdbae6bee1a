/** The tunnel that a user names by its name, its host, its URL or its id. */
import type { Tunnel } from "../../protocol/schemas/tunnels/tunnels.ts";
import { UsageError } from "../options.ts";
import { stripControl } from "../output/terminal-view.ts";
import { RejectionError } from "../tunnel-connection.ts";
import type { ManagementApi } from "./management-api.ts";

/** Names of other tunnels in a message. */
const SUGGESTIONS_MAX = 8;

/** Strong matches come first: a name inside a project may equal the whole subdomain of another tunnel. */
const MATCHES: ((tunnel: Tunnel, wanted: string) => boolean)[] = [
  ({ id }, wanted) => id === wanted,
  ({ subdomain }, wanted) => subdomain === wanted,
  ({ publicUrl, customDomains }, wanted) =>
    getHosts(publicUrl).includes(wanted) || customDomains.includes(wanted),
  ({ name }, wanted) => name === wanted,
];

/**
 * @param text a name such as `api`, a host such as `api.tunnels.example.com`, a URL or an id.
 * @throws RejectionError when there is no such tunnel, UsageError when several match.
 */
export async function findTunnel(
  api: ManagementApi,
  text: string,
  signal?: AbortSignal,
): Promise<Tunnel> {
  const wanted = parseTunnelName(text);
  const found = MATCHES.map((): Tunnel[] => []);
  const others: string[] = [];
  for await (const page of api.listTunnels(signal)) {
    for (const tunnel of page) {
      const strength = MATCHES.findIndex((matches) => matches(tunnel, wanted));
      if (strength !== -1) found[strength]!.push(tunnel);
      else if (others.length < SUGGESTIONS_MAX) others.push(tunnel.subdomain);
    }
  }
  const strongest = found.find((tunnels) => tunnels.length > 0) ?? [];
  // The name of an expired tunnel may belong to a newer one.
  const current = strongest.filter(({ status }) => status !== "expired");
  const [tunnel, ...rest] = current.length > 0 ? current : strongest.slice(0, 1);
  if (!tunnel) throw notFound(text, others);
  if (rest.length > 0) {
    const names = [tunnel, ...rest].map(({ subdomain }) => subdomain).join(", ");
    throw new UsageError(
      `${rest.length + 1} tunnels are called ${text}, in several projects; name one of them: ${names}`,
    );
  }
  return tunnel;
}

function notFound(text: string, others: string[]): RejectionError {
  const names = others.map(stripControl).join(", ");
  const known = names === "" ? "you have none yet" : `you have: ${names}`;
  const more = others.length === SUGGESTIONS_MAX ? " and perhaps more; run: underpass tunnels" : "";
  return new RejectionError("not_found", `there is no tunnel ${text}; ${known}${more}`);
}

/** @returns the host of a URL, with its port if it names one; otherwise the text in lower case. */
function parseTunnelName(text: string): string {
  const isUrl = text.includes("://") && URL.canParse(text);
  return isUrl ? new URL(text).host : text.toLowerCase().replace(/\/$/, "");
}

/** A URL of a self-hosted server may have a port, which a user may leave out. */
function getHosts(publicUrl: string): string[] {
  const { host, hostname, protocol } = new URL(publicUrl);
  // All TCP tunnels of a relay have its host: only the port tells them apart.
  return protocol === "tcp:" ? [host] : [host, hostname];
}
