/** Visitors of a tunnel with an identity gate: a server, a real provider, a local server behind an agent. */
import { type ExposedTunnel, expose } from "../../../agent/expose.ts";
import { mintToken, startApi, type Person, type Reply, type TestApi } from "../server/api.ts";
import { CookieBrowser, type Visit } from "../browser/cookie-browser.ts";
import { startIdentityProvider, type IdentityProvider } from "../fakes/identity-provider.ts";
import { OK, startRawOrigin, type RawOrigin } from "./origin.ts";
import { exchange, type Answer } from "./raw-http.ts";

const BROWSER = { accept: "text/html,application/xhtml+xml", "sec-fetch-mode": "navigate" };
export const COOKIE = "underpass-visitor";
export const TICKET_PATH = "/.underpass/edge-auth";

interface Lists {
  allowed_domains?: string[];
  allowed_emails?: string[];
}

interface GateState {
  id: string;
  edge_auth_enabled: boolean;
}

export interface GatedVisits extends AsyncDisposable {
  api: TestApi;
  owner: Person;
  provider: IdentityProvider;
  origin: RawOrigin;
  /** A tunnel to the local server, with a gate. */
  exposeGated(lists?: Lists, by?: Person): Promise<ExposedTunnel>;
  put(tunnelId: string, lists: object, by?: Person): Promise<Reply<GateState>>;
  remove(tunnelId: string): Promise<Reply<GateState>>;
  /** Sets the user that the provider signs in from now on. */
  signInAs(email: string, verified?: boolean): void;
  /** Follows redirects up to one to a path that contains `path`. @returns its location. */
  followUntil(browser: CookieBrowser, url: string | URL, path: string): Promise<URL>;
  /** Signs in at the tunnel's gate. @returns the visitor pass. */
  getPass(email: string, tunnel: ExposedTunnel): Promise<string>;
  /** Sends one request. @param headers lines that each end with a line break. */
  request(
    tunnel: ExposedTunnel | string,
    headers?: string,
    path?: string,
    method?: string,
  ): Promise<Answer>;
}

/** Sends a browser's headers, and resolves names below `localhost` to this machine as browsers do; Node.js does not. */
export class TunnelBrowser extends CookieBrowser {
  override open(url: string | URL, headers: Record<string, string> = {}): Promise<Visit> {
    return super.open(url, { ...BROWSER, ...headers });
  }

  protected override async send(href: string, headers: Record<string, string>): Promise<Response> {
    const { host, hostname, port, pathname, search } = new URL(href);
    if (!hostname.endsWith(".localhost")) return super.send(href, headers);
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const request = `GET ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\n${lines.join("")}\r\n`;
    const answer = await exchange(Number(port), request);
    const { status, headers: pairs, body } = answer;
    return new Response(new Uint8Array(body), { status, headers: pairs });
  }
}

export async function startGatedVisits(): Promise<GatedVisits> {
  const api = await startApi();
  const provider = await startIdentityProvider(api.fakePorts.identityProvider);
  await provider.register(`http://localhost:${api.server.port}/edge-auth/callback`);
  const origin = await startRawOrigin(() => OK);
  const owner = await api.owner();
  const tunnels: ExposedTunnel[] = [];

  async function put(tunnelId: string, lists: object, by = owner) {
    return by.send<GateState>("PUT", `/tunnels/${tunnelId}/edge-auth`, {
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ allowed_domains: [], allowed_emails: [], ...lists }),
    });
  }
  async function exposeGated(lists: Lists = {}, by = owner): Promise<ExposedTunnel> {
    const { wireBytes } = await mintToken(by);
    const token = Buffer.from(wireBytes, "base64");
    const tunnel = await expose({ port: origin.port, server: api.server.url, token });
    tunnels.push(tunnel);
    const set = await put(tunnel.tunnelId, lists, by);
    if (set.status !== 200)
      throw new Error(`the gate could not be set: ${JSON.stringify(set.body)}`);
    return tunnel;
  }
  async function followUntil(
    browser: CookieBrowser,
    url: string | URL,
    path: string,
  ): Promise<URL> {
    const isEnd = ({ pathname }: URL) => pathname.includes(path);
    const { location, status, body } = await browser.followRedirects(url, isEnd);
    if (!location) throw new Error(`there was no redirect to ${path}: ${status} ${body}`);
    return location;
  }
  function signInAs(email: string, verified = true): void {
    provider.user = { sub: `of ${email}`, email, email_verified: verified };
  }
  return {
    api,
    owner,
    provider,
    origin,
    exposeGated,
    put,
    remove: (tunnelId) => owner.delete(`/tunnels/${tunnelId}/edge-auth`),
    signInAs,
    followUntil,
    async getPass(email, tunnel) {
      signInAs(email);
      const browser = new TunnelBrowser();
      await browser.followRedirects(tunnel.url);
      const pass = browser.cookie(new URL(tunnel.url).hostname, COOKIE);
      if (pass === undefined) throw new Error(`${email} was not let in`);
      return pass;
    },
    request(tunnel, headers = "", path = "/", method = "GET") {
      const host = typeof tunnel === "string" ? tunnel : new URL(tunnel.url).host;
      const request = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n${headers}\r\n`;
      return exchange(api.server.port, request);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(tunnels.map((tunnel) => tunnel.close()));
      await Promise.all([provider[Symbol.asyncDispose](), origin.stop()]);
      await api.stop();
    },
  };
}
