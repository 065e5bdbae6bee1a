/** The tunnel that a user names by its name, its host, its URL or its id. */
import type { Tunnel } from "../../protocol/schemas/tunnels/tunnels.ts";
import { formatSuggestion } from "../options/suggestion.ts";
import { rejectEmpty, UsageError } from "../options.ts";
import { RejectionError } from "../rejection-error.ts";
import type { ManagementApi } from "./management-api.ts";
import { PROGRAM } from "../program.ts";

/** A message names at most this many tunnels; beyond that it gives their number. */
const NAMES_SHOWN = 8;

/** Strong matches come first: a name inside a project may equal the whole subdomain of another tunnel. */
const MATCHES: ((tunnel: Tunnel, wanted: string) => boolean)[] = [
  ({ id }, wanted) => id === wanted,
  ({ subdomain }, wanted) => subdomain === wanted,
  ({ publicUrl, customDomains }, wanted) =>
    getHosts(publicUrl).includes(wanted) || customDomains.includes(wanted),
  ({ name }, wanted) => name === wanted,
];

/** The tunnels that may be meant, by the strength of the match. */
interface Search {
  text: string;
  wanted: string;
  found: Tunnel[][];
}

/** Like `findTunnels` for one text. */
export async function findTunnel(api: ManagementApi, text: string): Promise<Tunnel> {
  const [tunnel] = await findTunnels(api, [text]);
  return tunnel!;
}

/**
 * @param texts names such as `api`, hosts such as `api.tunnels.example.com`, URLs or ids.
 * @returns each tunnel once. @throws RejectionError when one does not exist, UsageError when a text is empty, or
 * several match it.
 */
export async function findTunnels(api: ManagementApi, texts: string[]): Promise<Tunnel[]> {
  for (const text of texts) rejectEmpty(text, "the name of the tunnel");
  const searches = texts.map((text): Search => {
    return { text, wanted: parseTunnelName(text), found: MATCHES.map(() => []) };
  });
  const known: string[] = [];
  for await (const page of api.listTunnels()) {
    for (const tunnel of page) {
      known.push(tunnel.subdomain);
      for (const { wanted, found } of searches) {
        const strength = MATCHES.findIndex((matches) => matches(tunnel, wanted));
        if (strength !== -1) found[strength]!.push(tunnel);
      }
    }
  }
  const tunnels = searches.map((search) => chooseTunnel(search, known));
  return [...new Set(tunnels)];
}

function chooseTunnel({ text, found }: Search, known: string[]): Tunnel {
  const strongest = found.find((tunnels) => tunnels.length > 0) ?? [];
  // The name of an expired tunnel may belong to a newer one.
  const current = strongest.filter(({ status }) => status !== "expired");
  const [tunnel, ...rest] = current.length > 0 ? current : strongest.slice(0, 1);
  if (!tunnel) throw notFound(text, known);
  if (rest.length > 0) {
    const names = [tunnel, ...rest].map(({ subdomain }) => subdomain).join(", ");
    throw new UsageError(
      `${rest.length + 1} tunnels are called ${text}, in several projects; name one of them: ${names}`,
    );
  }
  return tunnel;
}

function notFound(text: string, known: string[]): RejectionError {
  const suggestion = formatSuggestion(text, known);
  return new RejectionError(
    "not_found",
    `there is no tunnel ${text}${suggestion === "" ? "; " : `${suggestion} `}${describeKnown(known)}`,
  );
}

function describeKnown(known: string[]): string {
  if (known.length === 0) return "you have none yet";
  if (known.length > NAMES_SHOWN)
    return `to list your ${known.length} tunnels, run: ${PROGRAM} tunnels`;
  return `your tunnels: ${known.join(", ")}`;
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
