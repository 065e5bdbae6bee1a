/** Validation of custom domains: a name must be registrable, and not belong to this service. */
import { getPublicSuffix } from "tldts";
import { LABEL, SUBDOMAIN_MAX_CHARS } from "../../../protocol/names.ts";
import type { Config } from "../../config/config.ts";

/** The maximum of a whole name (RFC 1035 §2.3.4), less `_svc-challenge.`, which the TXT record adds. */
const DOMAIN_MAX_CHARS = 253 - 15;

type ParsedDomain = { domain: string } | { error: string };

/**
 * @param text a name in any script and case. @returns it in lower case as A-labels, or an error message that continues
 * "The domain".
 */
export function parseDomain(
  config: Pick<Config, "SERVICE_DOMAIN" | "API_HOSTS">,
  text: string,
): ParsedDomain {
  const domain = toAscii(text.trim());
  if (domain === null) return { error: "is not a valid domain name" };
  const labels = domain.split(".");
  if (labels.length < 2) return { error: "must contain a dot" };
  if (/^\d+$/.test(labels.at(-1)!)) return { error: "must be a name, not an IP address" };
  const longest = Math.max(...labels.map(({ length }) => length));
  if (longest > SUBDOMAIN_MAX_CHARS) {
    return {
      error: `must have at most ${SUBDOMAIN_MAX_CHARS} characters between two dots, and has ${longest}`,
    };
  }
  if (!labels.every((label) => LABEL.test(label))) {
    return { error: "must consist of letters, digits and inner hyphens" };
  }
  if (domain.length > DOMAIN_MAX_CHARS) {
    return { error: `must have at most ${DOMAIN_MAX_CHARS} characters` };
  }
  const ours = [config.SERVICE_DOMAIN, ...config.API_HOSTS];
  if (ours.some((host) => domain === host || domain.endsWith(`.${host}`))) {
    return { error: "belongs to this service" };
  }
  if (getPublicSuffix(domain, SUFFIXES) === domain) {
    return { error: "is a public suffix, under which others register names" };
  }
  return { domain };
}

/** Private suffixes such as `github.io` are not registrable either. */
const SUFFIXES = { allowPrivateDomains: true, extractHostname: false, validateHostname: false };

/** Converts as browsers do (UTS 46), so that the claimed name is the one that they send as the Host. */
function toAscii(text: string): string | null {
  // These would be other parts of a URL, or would be decoded.
  if (text === "" || /[\s/\\:?#@%[\]]/.test(text)) return null;
  const host = URL.parse(`http://${text}`)?.hostname;
  return host === undefined || host === "" ? null : host.replace(/\.$/, "");
}
