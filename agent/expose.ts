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
import type * as library from "./library/types.ts";
import type { ExposedTunnel, ExposeOptions } from "./library/types.ts";
import { asTypeError, parseExposeOptions, toTypeError } from "./library/parse-expose-options.ts";
import { HttpTunnel } from "./tunnel/http-tunnel.ts";
import { RejectionError } from "./rejection-error.ts";

export type * from "./library/types.ts";

// Declared and described in library/types.ts, which the package contains.
export const Rejected: typeof library.Rejected = RejectionError;
export type Rejected = library.Rejected;

export const expose: typeof library.expose = async (options) => {
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
};

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
