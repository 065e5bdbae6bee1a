/** How this machine reaches the server: directly, or through the proxy that the environment names. */
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { getHost } from "../outgoing/address.ts";
import type { ProxyAddress } from "../outgoing/proxy.ts";
import type { ServerEndpoint } from "../server-access.ts";

export interface Route extends ServerEndpoint {
  token: Buffer | null;
  /** A sentence with the next step of the user when the server does not accept the token. */
  renewal: string;
  /** undefined: connections are direct. */
  proxy: ProxyAddress | undefined;
}

export function isAddress(url: URL): boolean {
  return isIP(getHost(url)) !== 0;
}

/** @throws Error with the code of the system, such as ECONNREFUSED. */
export function openTcp(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connectTcp({ host, port });
    const abort = (): void => void socket.destroy(signal.reason as Error);
    signal.addEventListener("abort", abort, { once: true });
    socket.once("error", reject);
    socket.once("connect", () => {
      signal.removeEventListener("abort", abort);
      socket.off("error", reject);
      socket.on("error", () => undefined);
      resolve(socket);
    });
  });
}
