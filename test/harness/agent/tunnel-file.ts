/** An `underpass.yml`, and what its tunnels lead to, for the tests of `underpass start`. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { createTemporaryDir } from "../directories.ts";
import type { TcpStack } from "../relay/tcp/stack.ts";
import { exchange, type Answer } from "../tunnel/raw-http.ts";

export interface TunnelFile {
  stack: TcpStack;
  /** The port of the local server. */
  port: number;
  /** New for each test. */
  directory: string;
  path: string;
  /** @param tunnels lines of the mapping `tunnels`. @param path another file than `path`. */
  write(tunnels: string[], path?: string): Promise<void>;
  visit(subdomain: string, path?: string): Promise<Answer>;
}

/**
 * One for each test file.
 *
 * @param startStack called by `beforeAll`. @param listener answers the requests to the local server.
 */
export function useTunnelFile(
  startStack: () => Promise<TcpStack>,
  listener: RequestListener,
): TunnelFile {
  const site = createServer(listener);
  const file = { write, visit } as TunnelFile;
  beforeAll(async () => {
    site.listen(0, "127.0.0.1");
    [file.stack] = await Promise.all([startStack(), once(site, "listening")]);
    file.port = (site.address() as AddressInfo).port;
  });
  afterAll(async () => {
    site.closeAllConnections();
    site.close();
    await file.stack?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    file.directory = await createTemporaryDir();
    file.path = join(file.directory, "underpass.yml");
    return () => rm(file.directory, { recursive: true, force: true });
  });

  function write(tunnels: string[], path = file.path): Promise<void> {
    const { url } = file.stack.api.server;
    const lines = ["version: 1", `server: ${url}`, "tunnels:", ...tunnels, ""];
    return writeFile(path, lines.join("\n"));
  }

  function visit(subdomain: string, path = "/"): Promise<Answer> {
    const head = `GET ${path} HTTP/1.1\r\nHost: ${subdomain}.localhost\r\n\r\n`;
    return exchange(file.stack.api.server.port, head);
  }
  return file;
}
