/** The public host that an agent asks for: a name below the service's own domain, or a custom domain. */
import { toRouteName } from "../../../protocol/hosts.ts";
import { DEFAULT_PROJECT_SLUG, toLabel } from "../../../protocol/names.ts";
import type { Config } from "../../config/config.ts";
import { isUnrestricted } from "../../identity/tokens/agent-tokens.ts";
import type { TokenPayload } from "../../identity/tokens/capability-token.ts";
import type { AgentRequest } from "../../internal-api-binding.ts";
import { toUuid } from "../../../shared/bytes.ts";
import type { Database } from "../../store/database.ts";
import {
  findDomainTunnel,
  type DomainRefusal,
  type DomainRequest,
} from "../../store/domains/agent-domains.ts";
import { ConnectionRefusedError } from "./refusals.ts";

/** The tunnel that an agent's query asks for. */
interface RequestedTunnel {
  /** undefined: a random name. */
  name: string | undefined;
  projectSlug: string;
  domain: DomainRequest | null;
}

type Query = AgentRequest["query"];

/** @throws ConnectionRefusedError when the host can't be served. */
export async function resolveRequestedTunnel(
  config: Config,
  db: Database,
  token: TokenPayload,
  query: Query,
): Promise<RequestedTunnel> {
  const { host } = query;
  const projectSlug = query.project ?? token.project ?? DEFAULT_PROJECT_SLUG;
  if (host === undefined) return { name: query.subdomain, projectSlug, domain: null };
  if (config.API_HOSTS.has(host)) {
    throw new ConnectionRefusedError("invalid_request", `${host} is a host of the service itself`);
  }
  const routeName = toRouteName(host, config.SERVICE_DOMAIN);
  if (routeName === null) {
    throw new ConnectionRefusedError(
      "invalid_request",
      `a tunnel's host is a name and .${config.SERVICE_DOMAIN}, such as shop.${config.SERVICE_DOMAIN}`,
    );
  }
  if (!routeName.includes("."))
    return { name: toName(routeName, projectSlug, query), projectSlug, domain: null };

  // A token that is confined to names may serve a domain that a member gave to one of them.
  const domain = { domain: host, canBind: isUnrestricted(token) };
  if (query.subdomain !== undefined) return { name: query.subdomain, projectSlug, domain };
  const tunnel = await findDomainTunnel(db, toUuid(token.organizationId), host);
  if (typeof tunnel === "string") throw toDomainRefusal(tunnel, host);
  if (tunnel === null) return { name: undefined, projectSlug, domain };
  if (query.project !== undefined && query.project !== tunnel.projectSlug) {
    throw new ConnectionRefusedError(
      "domain_in_use",
      `${host} leads to a tunnel of the project ${tunnel.projectSlug}`,
    );
  }
  return { ...tunnel, domain };
}

/** The name of a tunnel with this label, which ends with the project's suffix. */
function toName(label: string, projectSlug: string, { subdomain }: Query): string {
  const suffix = toLabel("", projectSlug);
  const name = label.slice(0, label.length - suffix.length);
  if (!label.endsWith(suffix) || name === "") {
    throw new ConnectionRefusedError(
      "invalid_request",
      `names of the project ${projectSlug} end with ${suffix}`,
    );
  }
  if (subdomain === undefined || subdomain === name) return name;
  throw new ConnectionRefusedError("invalid_request", "host and subdomain name different tunnels");
}

export function toDomainRefusal(refusal: DomainRefusal, domain: string): ConnectionRefusedError {
  switch (refusal) {
    case "domain_not_found":
      return new ConnectionRefusedError(refusal, `the organization has no domain ${domain}`);
    case "domain_not_verified":
      return new ConnectionRefusedError(refusal, `${domain} is not verified yet`);
    case "domain_in_use":
      return new ConnectionRefusedError(refusal, `${domain} leads to another tunnel`);
    case "domain_not_bound":
      return new ConnectionRefusedError(
        "forbidden",
        `the token is restricted, and ${domain} leads to no tunnel yet`,
      );
  }
}
