/** Names and addresses of hosts, in the forms of URLs and of sockets. */

/** `host:port`, with brackets around an IPv6 address. */
export function formatHostAndPort(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** @param host of a URL. @returns an IPv6 address without its brackets, as sockets take it. */
export function stripBrackets(host: string): string {
  return host.replace(/^\[|\]$/g, "");
}

/** @param header of a request: `Host`. @returns its name or address without the port, or null if there is no valid one. */
export function parseHostName(header: string | undefined): string | null {
  const url = `http://${header}`;
  return header !== undefined && URL.canParse(url) ? new URL(url).hostname : null;
}

/** @param host a name or an address; IPv6 with or without brackets. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || /^127(\.\d{1,3}){3}$/.test(host) || stripBrackets(host) === "::1";
}

/** The three spellings of `::ffff:0:0/96` (RFC 4291 §2.5.5.2): with the IPv4 address in dots, in hex, and without `::`. */
const MAPPED_IPV4 =
  /^(?:::|(?:0{1,4}:){5})ffff:(?:(\d+\.\d+\.\d+\.\d+)|([\da-f]{1,4}):([\da-f]{1,4}))$/i;

/** @returns `a.b.c.d` for `::ffff:a.b.c.d`, which is how a dual-stack socket writes an IPv4 address. */
export function unmapIpv4Address(address: string): string {
  const [, dotted, high, low] = MAPPED_IPV4.exec(address) ?? [];
  if (high === undefined || low === undefined) return dotted ?? address;
  const groups = [high, low].map((group) => Number.parseInt(group, 16));
  return groups.flatMap((group) => [group >>> 8, group & 255]).join(".");
}
