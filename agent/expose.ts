/**
 * The agent as a library:
 *
 *     import { expose } from "underpass";
 *     await using tunnel = await expose({ port: 3000 });
 *     console.log(tunnel.url);
 */
import type { EventEmitter } from "node:events";
import { findServerEndpoint, type ServerEndpoint } from "./server-access.ts";
import { findToken, type FoundToken } from "./settings.ts";
import type { ExposedTunnel, ExposeOptions, Rejection } from "./library/types.ts";
import { asTypeError, parseExposeOptions, toTypeError } from "./library/parse-expose-options.ts";
import { HttpTunnel } from "./tunnel/http-tunnel.ts";
import { RejectionError } from "./rejection-error.ts";

export type * from "./library/types.ts";

/** The class of the errors that tell that the server rejected a tunnel permanently, for `instanceof`. */
export const Rejected: new (reason: string, explanation: string) => Rejection = RejectionError;
export type Rejected = Rejection;

/**
 * Gives a local server, or a function, a public URL. Resolves when visitors can use the URL; for a stopped tunnel, not before
 * it is started. While the server can't be reached it keeps trying, and emits one process warning.
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
  const tunnelOptions = parseExposeOptions(options);
  const { signal } = options;
  signal?.throwIfAborted();
  const endpoint = await getServerEndpoint(options);
  const access = { ...endpoint, ...(await getToken(options, endpoint.server)) };
  signal?.throwIfAborted();
  const tunnel = asTypeError(() => new HttpTunnel({ ...tunnelOptions, ...access }));
  return new Promise((resolve, reject) => {
    const close = (): Promise<void> => tunnel.close();
    const abort = (): void => {
      reject(signal?.reason as Error);
      void close();
    };
    signal?.addEventListener("abort", abort, { once: true });
    tunnel.once("closed", () => signal?.removeEventListener("abort", abort));
    tunnel.once("rejected", (rejection: RejectionError) => reject(rejection));
    // Until the caller has the tunnel's events, nothing else says why the call takes long.
    const warn = (reason: string): void =>
      process.emitWarning(`expose() is still connecting to ${endpoint.server.origin}: ${reason}`, {
        type: "UnderpassWarning",
      });
    tunnel.once("retrying", warn);
    tunnel.once("ready", ({ url, tunnelId }) => {
      tunnel.off("retrying", warn);
      // Programs see fewer events than the commands.
      const events = tunnel as EventEmitter as ExposedTunnel["events"];
      resolve({ url, tunnelId, events, close, [Symbol.asyncDispose]: close });
    });
    tunnel.start();
  });
}

/** @throws TypeError when the CA file can't be used; otherwise like `findServerEndpoint`. */
async function getServerEndpoint({ server, caFile }: ExposeOptions): Promise<ServerEndpoint> {
  try {
    return await findServerEndpoint({ server, "ca-file": caFile });
  } catch (error) {
    throw toTypeError(error);
  }
}

/** @throws SettingsError when there is none. */
async function getToken({ token, tokenFile }: ExposeOptions, server: URL): Promise<FoundToken> {
  if (token === undefined) return findToken(server, tokenFile);
  const bytes = typeof token === "string" ? Buffer.from(token, "base64") : Buffer.from(token);
  return { token: bytes, renewal: "Give expose() a valid token." };
}
