/** Whether pages of tunnels and the API are on the same site, where a page can set cookies for the API. */
import { isIP } from "node:net";
import { stripBrackets } from "../shared/hosts.ts";

/** Names that no browser outside of the machine or its network reaches. */
const LOCAL_SUFFIXES = ["localhost", "local", "internal", "test", "home.arpa", "lan"];
/** The second level of countries that sell names below it, such as `co.uk`. */
const COUNTRY_SECOND_LEVELS = new Set(["ac", "co", "com", "edu", "gov", "net", "or", "org"]);

/** @returns the first host of the API on the site of the tunnels' pages, and the site. */
export function findSharedSite(
  apiHosts: readonly string[],
  serviceDomain: string,
): { apiHost: string; site: string } | undefined {
  const site = getSite(serviceDomain);
  const apiHost = site && apiHosts.find((host) => getSite(host) === site);
  return apiHost ? { apiHost, site } : undefined;
}

/** Whether others may reach the name: it is neither an address nor a name of this machine or its network. */
export function isPublicName(host: string): boolean {
  return getSite(host) !== undefined;
}

/**
 * The registrable domain of a public name, without the list of public suffixes: a name below one that only the list has
 * counts as shared.
 */
function getSite(host: string): string | undefined {
  const name = host.toLowerCase();
  const labels = name.split(".");
  const isLocal = LOCAL_SUFFIXES.some((suffix) => name === suffix || name.endsWith(`.${suffix}`));
  if (isLocal || labels.length < 2 || isIP(stripBrackets(name)) !== 0) return undefined;
  const [second = "", country = ""] = labels.slice(-2);
  const isSuffix = country.length === 2 && COUNTRY_SECOND_LEVELS.has(second);
  return labels.slice(isSuffix ? -3 : -2).join(".");
}
