/** Names and addresses of hosts, in the forms of URLs and of sockets. */

/** `host:port`, with brackets around an IPv6 address. */
export function formatHostAndPort(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** @param host of a URL. @returns an IPv6 address without its brackets, as sockets take it. */
export function stripBrackets(host: string): string {
  return host.replace(/^\[|\]$/g, "");
}

/** @param host a name or an address; IPv6 with or without brackets. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || /^127(\.\d{1,3}){3}$/.test(host) || stripBrackets(host) === "::1";
}

/** @returns `a.b.c.d` for `::ffff:a.b.c.d`, which is how a dual-stack socket writes an IPv4 address. */
export function unmapIpv4Address(address: string): string {
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
}
