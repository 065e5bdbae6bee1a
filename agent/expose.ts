/**
 * The agent as a library:
 *
 *     import { expose } from "underpass";
 *     await using tunnel = await expose({ port: 3000 });
 *     console.log(tunnel.url);
 */
import { parsePublicOptions } from "./gates/expose-options.ts";
import { parseHostMode } from "./host-header.ts";
import { findServer, findToken } from "./settings.ts";
import type { ExposedTunnel, ExposeOptions, Rejection } from "./library/types.ts";
import { HandlerDispatcher } from "./origin/handler.ts";
import { createLocalTarget, type Target } from "./target.ts";
import { findTarget } from "./files/files-target.ts";
import { UsageError } from "./options.ts";
import { HttpTunnel } from "./http-tunnel.ts";
import { RejectionError } from "./tunnel-connection.ts";

export type * from "./library/types.ts";

/** The class of the errors that tell that the server rejected a tunnel permanently, for `instanceof`. */
export const Rejected: new (reason: string, explanation: string) => Rejection = RejectionError;
export type Rejected = Rejection;

/**
 * Gives a local server, or a function, a public URL. Resolves when visitors can use the URL; for a stopped tunnel, not before
 * it is started.
 *
 *     const tunnel = await expose({ port: 3000, subdomain: "shop" });
 *     tunnel.events.on("request", ({ method, path, status }) => console.log(method, path, status));
 *
 *     await expose({ fetch: (request) => new Response(`You asked for ${request.url}`) });
 *
 *     await expose({ origin: "https://localhost:8443", signal: AbortSignal.timeout(60_000) });
 *
 * @throws Rejected when the server rejects the tunnel permanently; TypeError when an option is wrong; the signal's reason.
 */
export async function expose(options: ExposeOptions): Promise<ExposedTunnel> {
  const { signal } = options;
  const target = getTarget(options);
  const publicOptions = parsePublicOptions(options);
  signal?.throwIfAborted();
  const server = await findServer(options.server);
  const token = await getToken(options, server);
  signal?.throwIfAborted();
  const tunnel = new HttpTunnel({
    target,
    server,
    token,
    hostMode: parseHostMode(options.hostHeader ?? "auto"),
    insecureUpstream: options.insecureUpstream ?? false,
    settings: { ...options, ttl: options.ttlSeconds },
    ...publicOptions,
  });
  return new Promise((resolve, reject) => {
    const close = (): Promise<void> => tunnel.close();
    const abort = (): void => {
      reject(signal?.reason as Error);
      void close();
    };
    signal?.addEventListener("abort", abort, { once: true });
    tunnel.once("closed", () => signal?.removeEventListener("abort", abort));
    tunnel.once("rejected", (rejection: RejectionError) => reject(rejection));
    tunnel.once("ready", ({ url, tunnelId }) =>
      resolve({ url, tunnelId, events: tunnel, close, [Symbol.asyncDispose]: close }),
    );
    tunnel.start();
  });
}

/** @throws TypeError unless the options name exactly one target. */
function getTarget(options: ExposeOptions): Target {
  const { port, origin, fetch: handler, directoryListing } = options;
  const given = [port, origin, handler].filter((option) => option !== undefined);
  if (given.length !== 1) throw new TypeError("expose() needs one of port, origin and fetch");
  if (handler)
    return createLocalTarget("function", (context) => new HandlerDispatcher(handler, context));
  try {
    return findTarget(origin ?? String(port), { directoryListing });
  } catch (error) {
    throw error instanceof UsageError ? new TypeError(error.message) : error;
  }
}

/** @throws TypeError when there is a second token; SettingsError when there is none. */
async function getToken({ token, tokenFile }: ExposeOptions, server: URL): Promise<Buffer> {
  if (token === undefined) return findToken(server, tokenFile);
  if (tokenFile !== undefined) throw new TypeError("expose() needs token or tokenFile, not both");
  return typeof token === "string" ? Buffer.from(token, "base64") : Buffer.from(token);
}
