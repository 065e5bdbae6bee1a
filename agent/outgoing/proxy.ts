/** The HTTP proxy that HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY name, for every connection of the agent. */
import { request as requestHttp, type IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";
import type { Socket } from "node:net";
import { getProxyForUrl } from "proxy-from-env";
import { HELLO_TIMEOUT_MS } from "../../protocol/limits.ts";
import { getErrorCode } from "../../shared/error-message.ts";
import { formatHostAndPort } from "../../shared/hosts.ts";
import { getHost, getPort } from "./address.ts";
import type { TrustedAuthorities } from "./trusted-authorities.ts";

export interface ProxyAddress {
  url: URL;
  /** The variable of the environment that names it: `HTTPS_PROXY`. */
  variable: string;
}

/** The proxy can't be used. The message has no user name and no password. */
export class ProxyError extends Error {
  static override readonly name = "ProxyError";
  override name = "ProxyError";
  readonly problem: string;
  /** The next step of the user, as the end of a sentence. */
  readonly advice: string;

  constructor(problem: string, advice: string) {
    super(`${problem}; ${advice}`);
    this.problem = problem;
    this.advice = advice;
  }
}

/** Whether the environment names a proxy for the server, usable or not. @param server `http:`, `https:`, `ws:` or `wss:`. */
export function isProxied(server: URL): boolean {
  return getProxyForUrl(toHttp(server)) !== "";
}

/**
 * @param server as for `isProxied`. @returns undefined when connections are direct.
 * @throws ProxyError when the variable has no usable address.
 */
export function findProxy(server: URL): ProxyAddress | undefined {
  const variable = findProxyVariable(server);
  if (variable === undefined || !isProxied(server)) return undefined;
  const text = process.env[variable] ?? "";
  // Without a scheme it is an HTTP proxy for other programs too, whatever the server's scheme is.
  const address = text.includes("://") ? text : `http://${text}`;
  const example = `set it to the URL of an HTTP proxy, such as http://proxy:3128`;
  if (!URL.canParse(address)) throw new ProxyError(`${variable} is not a URL`, example);
  const url = new URL(address);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    const kind = url.protocol.slice(0, -1);
    throw new ProxyError(
      `${variable} names a proxy of the kind ${kind}, which the agent does not support`,
      `set it to the URL of an HTTP proxy, or add ${server.hostname} to NO_PROXY`,
    );
  }
  if (decodeCredentials(url) === null) {
    throw new ProxyError(
      `the user name or password in ${variable} is not percent-encoded`,
      "write %25 for each % of it",
    );
  }
  return { url, variable };
}

/** The variable that names a proxy for the server, whether or not NO_PROXY excludes the server. */
export function findProxyVariable(server: URL): string | undefined {
  const scheme = new URL(toHttp(server)).protocol.slice(0, -1);
  const names = [`${scheme}_proxy`, "all_proxy"].flatMap((name) => [name, name.toUpperCase()]);
  return names.find((name) => process.env[name]);
}

/** `http://proxy:3128 (HTTPS_PROXY)`, without its user name and password. */
export function formatProxy({ url, variable }: ProxyAddress): string {
  return `${url.protocol}//${url.host} (${variable})`;
}

/**
 * Asks a proxy for a connection to the server (CONNECT, RFC 9110 §9.3.6).
 * @throws ProxyError; also when the signal aborts or `HELLO_TIMEOUT_MS` have passed.
 */
export async function openThroughProxy(
  proxy: ProxyAddress,
  server: URL,
  authorities: TrustedAuthorities | undefined,
  signal?: AbortSignal,
): Promise<Socket> {
  const target = formatHostAndPort(getHost(server), getPort(server));
  let answer: Socket | number;
  try {
    answer = await sendConnect(proxy.url, target, authorities, signal);
  } catch (error) {
    throw describeFailure(proxy, server, getErrorCode(error) ?? "unknown error");
  }
  if (typeof answer !== "number") return answer;
  throw describeRefusal(proxy, server.hostname, target, answer);
}

/** @returns the socket, or the status with which the proxy refused. */
function sendConnect(
  proxy: URL,
  target: string,
  authorities: TrustedAuthorities | undefined,
  signal: AbortSignal | undefined,
): Promise<Socket | number> {
  const credentials = decodeCredentials(proxy) ?? "";
  const basic = Buffer.from(credentials).toString("base64");
  const timeout = AbortSignal.timeout(HELLO_TIMEOUT_MS);
  const send = proxy.protocol === "https:" ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const request = send({
      host: getHost(proxy),
      port: getPort(proxy),
      method: "CONNECT",
      path: target,
      headers: {
        host: target,
        ...(credentials === "" ? {} : { "proxy-authorization": `Basic ${basic}` }),
      },
      agent: false,
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      ...(authorities ? { secureContext: authorities.secureContext } : {}),
    });
    request.once("connect", ({ statusCode = 0 }: IncomingMessage, socket: Socket, head) => {
      socket.on("error", () => undefined);
      // Any 2xx opens the tunnel (RFC 9110 §9.3.6).
      if (statusCode >= 200 && statusCode < 300) {
        if (head.length > 0) socket.unshift(head);
        return resolve(socket);
      }
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

function describeRefusal(
  proxy: ProxyAddress,
  hostname: string,
  target: string,
  status: number,
): ProxyError {
  const { url, variable } = proxy;
  const name = `the proxy ${formatProxy(proxy)}`;
  if (status === 407) {
    return url.username === ""
      ? new ProxyError(
          `${name} requires a user name and a password (407)`,
          `add them to ${variable}: ${url.protocol}//USER:PASSWORD@${url.host}`,
        )
      : new ProxyError(
          `${name} does not accept the user name and password in ${variable} (407)`,
          "correct them there, with special characters percent-encoded",
        );
  }
  if (status === 502 || status === 503 || status === 504) {
    return new ProxyError(
      `${name} can't reach ${target} (${status})`,
      `check the server's address, or add ${hostname} to NO_PROXY`,
    );
  }
  return new ProxyError(
    `${name} does not allow connections to ${target} (${status})`,
    `ask its administrator to allow CONNECT to ${target}, or add ${hostname} to NO_PROXY`,
  );
}

function describeFailure(proxy: ProxyAddress, { hostname }: URL, code: string): ProxyError {
  const { variable } = proxy;
  const correct = `correct ${variable}, or add ${hostname} to NO_PROXY`;
  const fail = (problem: string, advice = correct): ProxyError =>
    new ProxyError(`the proxy ${formatProxy(proxy)} ${problem}`, advice);
  switch (code) {
    case "ECONNREFUSED":
      return fail("refuses connections");
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return fail("has a name that can't be resolved");
    case "ETIMEDOUT":
    case "ABORT_ERR":
      return fail("does not answer");
    case "ENETUNREACH":
    case "EHOSTUNREACH":
    case "ENETDOWN":
      return fail("can't be reached from this network");
    case "ECONNRESET":
    case "EPIPE":
      return fail("closes the connection without an answer");
    case "DEPTH_ZERO_SELF_SIGNED_CERT":
    case "SELF_SIGNED_CERT_IN_CHAIN":
    case "UNABLE_TO_GET_ISSUER_CERT":
    case "UNABLE_TO_GET_ISSUER_CERT_LOCALLY":
    case "UNABLE_TO_VERIFY_LEAF_SIGNATURE":
      return fail("has a certificate that is not trusted", "pass its CA's file with --ca-file");
    case "EPROTO":
    case "ERR_SSL_WRONG_VERSION_NUMBER":
    case "ERR_SSL_PACKET_LENGTH_TOO_LONG":
      return fail("does not speak TLS", `begin ${variable} with http://`);
    default:
      // Those of the HTTP parser.
      if (code.startsWith("HPE_")) return fail("does not answer like an HTTP proxy");
      return fail(`can't be used (${code})`);
  }
}

/** @returns `user:password`, empty when there is none; null when it is not valid. */
function decodeCredentials({ username, password }: URL): string | null {
  if (username === "" && password === "") return "";
  try {
    return `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  } catch {
    return null;
  }
}

function toHttp(server: URL): string {
  return server.href.replace(/^ws/, "http");
}
