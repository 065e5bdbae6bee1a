/** Host and port of a URL as sockets take them. */
import { stripBrackets } from "../../shared/hosts.ts";

export function getHost({ hostname }: URL): string {
  return stripBrackets(hostname);
}

export function getPort({ port, protocol }: URL): number {
  if (port !== "") return Number(port);
  return protocol === "https:" || protocol === "wss:" ? 443 : 80;
}
