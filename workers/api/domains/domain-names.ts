/** Which names can be somebody's custom domain: written as the DNS has it, registrable, and not ours. */
import { getPublicSuffix } from "tldts";
import { LABEL } from "../../../protocol/names.ts";
import type { Config } from "../../config/config.ts";

/** The whole of a name (RFC 1035 §2.3.4), less what the proof stands under: `_svc-challenge.`. */
const DOMAIN_MAX_CHARS = 253 - 15;

/** Where the proof is published, below the domain. */
const CHALLENGE_LABEL = "_svc-challenge";

export function getChallengeName(domain: string): string {
  return `${CHALLENGE_LABEL}.${domain}`;
}

export type ParsedDomain = { domain: string } | { fault: string };

/** @param text a name in any script and case. @returns it in lower case as A-labels, or what is wrong. */
export function parseDomain(
  config: Pick<Config, "SERVICE_DOMAIN" | "API_HOSTS">,
  text: string,
): ParsedDomain {
  const domain = toAscii(text.trim());
  if (domain === null) return { fault: "is not a domain name" };
  const labels = domain.split(".");
  if (labels.length < 2) return { fault: "must have a dot" };
  if (/^\d+$/.test(labels.at(-1)!)) return { fault: "must be a name, not an address" };
  if (!labels.every((label) => LABEL.test(label))) {
    return { fault: "must be made of letters, digits and inner hyphens" };
  }
  if (domain.length > DOMAIN_MAX_CHARS) {
    return { fault: `must be at most ${DOMAIN_MAX_CHARS} characters` };
  }
  const ours = [config.SERVICE_DOMAIN, ...config.API_HOSTS];
  if (ours.some((host) => domain === host || domain.endsWith(`.${host}`))) {
    return { fault: "is the service's own" };
  }
  if (getPublicSuffix(domain, SUFFIXES) === domain) {
    return { fault: "is a suffix under which others register names" };
  }
  return { domain };
}

/** Names that companies give out, such as `github.io`, are nobody's domain either. */
const SUFFIXES = { allowPrivateDomains: true, extractHostname: false, validateHostname: false };

/** As browsers do it (UTS 46), so that what is claimed here is what they send as a Host. */
function toAscii(text: string): string | null {
  // These would be other parts of a URL, or be decoded to something that is not what was written.
  if (text === "" || /[\s/\\:?#@%[\]]/.test(text)) return null;
  const host = URL.parse(`http://${text}`)?.hostname;
  return host === undefined || host === "" ? null : host.replace(/\.$/, "");
}
