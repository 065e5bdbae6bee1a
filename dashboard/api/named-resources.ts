/** All named resources of the organization that the user may read: for the palette, and to show names instead of ids. */
import { queryOptions } from "@tanstack/react-query";
import type { CustomDomain } from "../../protocol/schemas/domains/domains.ts";
import type { ReservedSubdomain } from "../../protocol/schemas/domains/reserved-subdomains.ts";
import type { PrivateNetwork } from "../../protocol/schemas/networks.ts";
import type { Project } from "../../protocol/schemas/organizations/projects.ts";
import type { Token } from "../../protocol/schemas/tokens.ts";
import type { Tunnel } from "../../protocol/schemas/tunnels/tunnels.ts";
import type { Receiver } from "../../protocol/schemas/webhooks.ts";
import { load } from "./session.ts";

export interface NamedResource {
  kind: "tunnel" | "domain" | "network" | "receiver" | "project" | "token" | "name";
  id: string;
  name: string;
  /** Distinguishes it from others with the same name. */
  detail: string;
}

/** A list that can't be loaded is left out, and of a long one the rows after its first page. */
export const namedResourcesQuery = queryOptions({
  queryKey: ["named-resources"],
  async queryFn({ signal }): Promise<NamedResource[]> {
    const loadNamed = async <Entry>(path: string, toResource: (entry: Entry) => NamedResource) =>
      (await load<Entry[]>(path, signal)).map(toResource);
    const lists = await Promise.allSettled([
      loadNamed<Tunnel>("/tunnels", ({ id, name, publicUrl }) => ({
        kind: "tunnel",
        id,
        name,
        detail: publicUrl,
      })),
      loadNamed<CustomDomain>("/domains", ({ id, domain, verified }) => ({
        kind: "domain",
        id,
        name: domain,
        detail: verified ? "" : "not verified",
      })),
      loadNamed<PrivateNetwork>("/private-networks", ({ id, name, cidr }) => ({
        kind: "network",
        id,
        name,
        detail: cidr,
      })),
      loadNamed<Receiver>("/webhook-receivers", ({ id, name, validator }) => ({
        kind: "receiver",
        id,
        name,
        detail: validator,
      })),
      loadNamed<Project>("/projects", ({ id, name, slug }) => ({
        kind: "project",
        id,
        name,
        detail: slug,
      })),
      loadNamed<Token>("/tokens", ({ id, name, nonce, revoked }) => ({
        kind: "token",
        id,
        name,
        detail: revoked ? `${nonce.slice(0, 8)}, revoked` : nonce.slice(0, 8),
      })),
      loadNamed<ReservedSubdomain>("/reserved-subdomains", ({ id, subdomain }) => ({
        kind: "name",
        id,
        name: subdomain,
        detail: "",
      })),
    ]);
    return lists.flatMap((list) => (list.status === "fulfilled" ? list.value : []));
  },
});
