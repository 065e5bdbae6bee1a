/** HTTP Strict Transport Security (RFC 6797), for answers of this service and never for those of a local server. */

/** A year. Not for the hosts below this one: they may belong to others. */
const STRICT_TRANSPORT_SECURITY = "max-age=31536000";

/** @param scheme of public URLs. */
export function setTransportSecurity(headers: Headers, scheme: string): void {
  if (scheme === "https") headers.set("strict-transport-security", STRICT_TRANSPORT_SECURITY);
}
