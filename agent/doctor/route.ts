/** How this machine reaches the server: directly, or through the proxy that the environment names. */
import { request as requestHttp, type IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";
import { connect as connectTcp, isIP, type Socket } from "node:net";

export interface Route {
  server: URL;
  token: Buffer | null;
  /** null: connections are direct. */
  proxy: URL | null;
}

export function getHost({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
}

export function getPort({ port, protocol }: URL): number {
  if (port !== "") return Number(port);
  return protocol === "https:" ? 443 : 80;
}

export function isAddress(url: URL): boolean {
  return isIP(getHost(url)) !== 0;
}

/** A proxy's address without its user name and password. */
export function formatProxy(proxy: URL): string {
  return `${proxy.protocol}//${proxy.host}`;
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

/**
 * Asks a proxy for a connection to the server (CONNECT, RFC 9110 §9.3.6).
 * @returns the socket, or the status with which the proxy refused.
 */
export function openThroughProxy(
  proxy: URL,
  server: URL,
  signal: AbortSignal,
): Promise<Socket | number> {
  const target = `${server.hostname}:${getPort(server)}`;
  const user = decodeURIComponent(proxy.username);
  const password = decodeURIComponent(proxy.password);
  const credentials = Buffer.from(`${user}:${password}`).toString("base64");
  const send = proxy.protocol === "https:" ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const request = send({
      host: getHost(proxy),
      port: getPort(proxy),
      method: "CONNECT",
      path: target,
      headers: {
        host: target,
        ...(proxy.username === "" ? {} : { "proxy-authorization": `Basic ${credentials}` }),
      },
      agent: false,
      signal,
    });
    request.once("connect", ({ statusCode = 0 }: IncomingMessage, socket: Socket) => {
      socket.on("error", () => undefined);
      if (statusCode === 200) return resolve(socket);
      socket.destroy();
      resolve(statusCode);
    });
    // A proxy that is an ordinary web server answers CONNECT like any other request.
    request.once("response", (response) => {
      response.destroy();
      resolve(response.statusCode ?? 0);
    });
    request.once("error", reject);
    request.end();
  });
}
