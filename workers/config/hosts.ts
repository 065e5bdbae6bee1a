/** Host names of the service itself. */

/** The service's own hosts. @param configured the setting API_HOSTS, if it is set. */
export function parseApiHosts(serviceDomain: string, configured: string | undefined): string[] {
  const hosts = configured?.split(",") ?? [serviceDomain, `api.${serviceDomain}`, "127.0.0.1"];
  return hosts.map((host) => host.trim().toLowerCase()).filter((host) => host !== "");
}
