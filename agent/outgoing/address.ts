/** Host and port of a URL as sockets take them. */

export function getHost({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
}

export function getPort({ port, protocol }: URL): number {
  if (port !== "") return Number(port);
  return protocol === "https:" || protocol === "wss:" ? 443 : 80;
}
