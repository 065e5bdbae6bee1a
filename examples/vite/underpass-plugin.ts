/** A plugin for Vite that gives the development server a public URL, with hot module replacement. */
import type { AddressInfo } from "node:net";
import { expose, type ExposeOptions } from "underpass";
import type { Plugin } from "vite";

/** @param options such as `subdomain`, for a URL that stays the same after a restart. */
export function underpass(options: Omit<ExposeOptions, "port" | "signal"> = {}): Plugin {
  return {
    name: "underpass",
    apply: "serve",
    configureServer({ httpServer, config: { logger } }) {
      const stop = new AbortController();
      httpServer?.once("close", () => stop.abort());
      httpServer?.once("listening", () => {
        const { port } = httpServer.address() as AddressInfo;
        // With `rewrite` Vite receives its own host name, so that `server.allowedHosts` need not name the public one.
        expose({ hostHeader: "rewrite", ...options, port, signal: stop.signal }).then(
          ({ url }) => logger.info(`  ➜  Public:  ${url}`),
          (error: Error) => {
            if (!stop.signal.aborted) logger.error(`underpass: ${error.message}`);
          },
        );
      });
    },
  };
}
