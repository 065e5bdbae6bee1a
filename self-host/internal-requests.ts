/** HTTP requests of the server's own process to its other processes. */
import { request, type RequestOptions } from "node:http";

const HEALTH_MAX_MS = 2_000;

/** The public address of the server, or the path of the socket that workerd listens on. */
export type HealthTarget = { apiHost: string } & (
  | { host: string; port: number }
  | { socketPath: string }
);

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

/** @returns the status of the response. */
export function requestStatus(options: RequestOptions, maxMs: number): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  request({ ...options, agent: false, signal: AbortSignal.timeout(maxMs) }, (response) => {
    response.resume();
    response.on("error", reject);
    response.on("end", () => resolve(response.statusCode ?? 0));
  })
    .on("error", reject)
    .end();
  return promise;
}

/** @returns the body of a successful response. Rejects for every other one, and for one that is too large. */
export function requestText(options: RequestOptions, maxMs: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const { method, path } = options;
  request({ ...options, agent: false, signal: AbortSignal.timeout(maxMs) }, (response) => {
    const { statusCode = 0 } = response;
    let text = "";
    response.setEncoding("utf8");
    response.on("data", (part: string) => {
      text += part;
      if (text.length > RESPONSE_MAX_CHARS) response.destroy(new Error("the answer is too large"));
    });
    response.on("error", reject);
    response.on("end", () => {
      if (statusCode >= 200 && statusCode < 300) resolve(text);
      else reject(new Error(`${method} ${path} answered ${statusCode}`));
    });
  })
    .on("error", reject)
    .end();
  return promise;
}

const RESPONSE_MAX_CHARS = 256 * 1024;

/** Returns the address to connect to for an address to listen on: for a wildcard address, the loopback one. */
export function toConnectableHost(host: string): string {
  return host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
}
