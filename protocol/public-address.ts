/** How browsers reach the service. Every part of the Worker derives it from the same settings. */

/** As they are bound to the Worker, or parsed. */
export interface PublicAddressSettings {
  SERVICE_DOMAIN?: string;
  API_HOSTS?: string;
  PUBLIC_SCHEME?: string;
  PUBLIC_PORT?: string | number;
}

export interface PublicAddress {
  scheme: string;
  /** `:8787`, or empty when it is the scheme's standard port. */
  portSuffix: string;
  /** The origin of the service's own links, and the issuer of its tokens. No trailing slash. */
  apiOrigin: string;
}

const STANDARD_PORTS: Readonly<Record<string, number>> = { http: 80, https: 443 };

/** The domain of the tunnels' hosts, in lower case. */
export function getServiceDomain({
  SERVICE_DOMAIN: domain = "localhost",
}: PublicAddressSettings): string {
  return domain.toLowerCase();
}

export function getPublicAddress(settings: PublicAddressSettings): PublicAddress {
  const { PUBLIC_SCHEME: scheme = "http" } = settings;
  const port = settings.PUBLIC_PORT === undefined ? undefined : Number(settings.PUBLIC_PORT);
  const portSuffix = port === undefined || port === STANDARD_PORTS[scheme] ? "" : `:${port}`;
  const [apiHost] = parseApiHosts(getServiceDomain(settings), settings.API_HOSTS);
  return { scheme, portSuffix, apiOrigin: `${scheme}://${apiHost}${portSuffix}` };
}

/** Host names separated by commas. @returns them in lower case. */
export function parseHostList(text: string): string[] {
  return text
    .split(",")
    .map((host) => host.trim().toLowerCase())
    .filter((host) => host !== "");
}

/** The service's own hosts. @param configured the setting API_HOSTS, if it is set. */
export function parseApiHosts(serviceDomain: string, configured: string | undefined): string[] {
  return parseHostList(configured ?? `${serviceDomain},api.${serviceDomain},127.0.0.1`);
}
