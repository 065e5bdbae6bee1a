/** Host names of the service itself. */

/** The hosts that are the service's own. @param configured the setting API_HOSTS, if there is one. */
export function parseApiHosts(serviceDomain: string, configured: string | undefined): string[] {
  const hosts = configured?.split(",") ?? [serviceDomain, `api.${serviceDomain}`, "127.0.0.1"];
  return hosts.map((host) => host.trim().toLowerCase()).filter((host) => host !== "");
}
