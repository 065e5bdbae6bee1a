/** A local server that `underpass http` shares from a pseudo-terminal, so that tests see the screen and its visitors. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { mintToken, startApi, type Person, type TestApi } from "../server/api.ts";
import { openScreen, type Screen, type ScreenOptions } from "../screen.ts";
import { exchange, type Answer } from "../tunnel/raw-http.ts";

export interface SharedServer extends AsyncDisposable {
  api: TestApi;
  owner: Person;
  local: Server;
  /** The port of the local server. */
  port: number;
  token: Buffer;
  /** The arguments of a command that shares the local server under this name. */
  getArgs(name: string, ...more: string[]): string[];
  getUrl(name: string): string;
  /** Resolves when the tunnel is online and its latency is shown. */
  share(name: string, options?: Partial<ScreenOptions>): Promise<Screen>;
  /** @param rest of the request's head after the host, and its body. */
  visit(name: string, path: string, method?: string, rest?: string): Promise<Answer>;
}

type Respond = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

export async function startSharedServer(respond: Respond): Promise<SharedServer> {
  const api = await startApi();
  const owner = await api.owner();
  const token = Buffer.from((await mintToken(owner)).wireBytes, "base64");
  const local = createServer((request, response) => void respond(request, response)).listen(
    0,
    "127.0.0.1",
  );
  await once(local, "listening");
  const { port } = local.address() as AddressInfo;
  const getArgs = (name: string, ...more: string[]): string[] => [
    ...["http", String(port), "--server", api.server.url, "--token-file", "TOKEN"],
    ...["--subdomain", name, "--inspect", "off", ...more],
  ];
  return {
    ...{ api, owner, local, port, token, getArgs },
    getUrl: (name) => `http://${name}.localhost:${api.server.port}`,
    async share(name, options = {}) {
      const screen = await openScreen(getArgs(name), { token, ...options });
      await screen.waitFor(/online, <?\d+ ms/);
      return screen;
    },
    visit: (name, path, method = "GET", rest = "\r\n") =>
      exchange(api.server.port, `${method} ${path} HTTP/1.1\r\nHost: ${name}.localhost\r\n${rest}`),
    async [Symbol.asyncDispose]() {
      local.closeAllConnections();
      local.close();
      await api.stop();
    },
  };
}
