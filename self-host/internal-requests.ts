/** HTTP requests of the server's own process to its other processes. */
import type { RequestOptions } from "node:http";
import { request } from "../sockets/node-http.ts";

const HEALTH_MAX_MS = 2_000;

/** The public address of the server, or the path of the socket that workerd listens on. */
type HealthTarget = { apiHost: string } & ({ host: string; port: number } | { socketPath: string });

/** Rejects unless the Worker answers. */
export function probeHealth({ apiHost, ...target }: HealthTarget): Promise<void> {
  const address = "host" in target ? { ...target, host: toConnectableHost(target.host) } : target;
  return sendRequest(
    { ...address, headers: { host: apiHost }, method: "GET", path: "/health" },
    HEALTH_MAX_MS,
  );
}

/** Rejects unless the response is a success. */
export async function sendRequest(options: RequestOptions, maxMs: number): Promise<void> {
  await requestText(options, maxMs);
}

/** @returns the status of the response. Rejects for a response that is too large. */
export async function requestStatus(options: RequestOptions, maxMs: number): Promise<number> {
  return (await exchange(options, maxMs)).status;
}

/** @returns the body of a successful response. Rejects for every other one, and for one that is too large. */
export async function requestText(options: RequestOptions, maxMs: number): Promise<string> {
  const { status, text } = await exchange(options, maxMs);
  if (status >= 200 && status < 300) return text;
  throw new Error(`${options.method} ${options.path} answered ${status}`);
}

const RESPONSE_MAX_CHARS = 256 * 1024;

function exchange(options: RequestOptions, maxMs: number) {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
  request({ ...options, agent: false, signal: AbortSignal.timeout(maxMs) }, (response) => {
    const { statusCode: status = 0 } = response;
    let text = "";
    response.setEncoding("utf8");
    response.on("data", (part: string) => {
      text += part;
      if (text.length > RESPONSE_MAX_CHARS) response.destroy(new Error("the answer is too large"));
    });
    response.on("error", reject);
    response.on("end", () => resolve({ status, text }));
  })
    .on("error", reject)
    .end();
  return promise;
}

/** Returns the address to connect to for an address to listen on: for a wildcard address, the loopback one. */
export function toConnectableHost(host: string): string {
  return host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
}
