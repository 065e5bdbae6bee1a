/** Pages about captured requests: a real tunnel, whose local server answers as the test says. */
import { afterAll, beforeAll } from "vitest";
import { mintToken, type Person, type TestApi } from "../server/api.ts";
import { expose, type ExposedTunnel } from "../../../agent/expose.ts";
import { startRawOrigin, type RawOrigin } from "../tunnel/origin.ts";
import { exchange } from "../tunnel/raw-http.ts";
import { waitForCaptures } from "../tunnel/visited-tunnel.ts";
import { usePages, type Pages } from "./pages.ts";

/** A page that showed it as HTML would set `window.hacked`. */
export const HOSTILE_HTML =
  "<script>window.hacked = true</script><img src=x onerror='window.hacked = true'>";

const encodePart = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
/** An expired JSON Web Token. */
export const WEB_TOKEN = `${encodePart({ alg: "HS256" })}.${encodePart({ sub: HOSTILE_HTML, exp: 1_000_000_000 })}.c2ln`;

export interface SentMessage {
  headers?: Record<string, string>;
  body?: Buffer | string;
}

export interface RequestToCapture extends SentMessage {
  method?: string;
  response?: SentMessage & { status?: number };
}

export interface CapturedPages {
  pages: Pages;
  owner: Person;
  agent: ExposedTunnel;
  origin: RawOrigin;
  host: string;
  /** Sends a request through the tunnel. @returns the id of its capture, once it has ended. */
  capture: (target: string, request?: RequestToCapture) => Promise<string>;
}

/** For one test file. @param startServer leases a shared server with an identity provider, or starts one without it. */
export function useCapturedPages(
  subdomain: string,
  startServer: () => Promise<TestApi>,
  hasProvider = true,
): CapturedPages {
  const pages = usePages(startServer, hasProvider);
  const captured = { pages, capture } as CapturedPages;
  const responses = new Map<string, RequestToCapture["response"]>();

  beforeAll(async () => {
    const { api } = pages;
    captured.owner = await api.owner();
    captured.origin = await startRawOrigin(({ target }) => formatResponse(responses.get(target)));
    const { wireBytes } = await mintToken(captured.owner);
    captured.agent = await expose({
      server: api.server.url,
      token: Buffer.from(wireBytes, "base64"),
      port: captured.origin.port,
      subdomain,
    });
    captured.host = `${subdomain}.localhost:${api.server.port}`;
  });
  afterAll(async () => {
    await captured.agent?.close();
    await captured.origin?.stop();
  });

  async function capture(target: string, request: RequestToCapture = {}): Promise<string> {
    const { method = "GET", headers = {}, body = "", response } = request;
    responses.set(target, response);
    const { host, owner, agent } = captured;
    const bytes = Buffer.from(body);
    const lines = { host, ...headers, ...(bytes.length > 0 && { "content-length": bytes.length }) };
    const head = `${method} ${target} HTTP/1.1\r\n${formatHeaders(lines)}\r\n`;
    await exchange(pages.api.server.port, Buffer.concat([Buffer.from(head), bytes]));
    const path = target.split("?", 1)[0] ?? "";
    const query = { tunnel_id: agent.tunnelId, path };
    const [newest] = await waitForCaptures(owner, query, 1);
    return newest!.id;
  }
  return captured;
}

function formatResponse({
  status = 200,
  headers = {},
  body = "ok",
}: RequestToCapture["response"] = {}) {
  const bytes = Buffer.from(body);
  const lines = { "content-length": bytes.length, ...headers };
  return Buffer.concat([
    Buffer.from(`HTTP/1.1 ${status} Test\r\n${formatHeaders(lines)}\r\n`),
    bytes,
  ]);
}

function formatHeaders(headers: Record<string, string | number>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("");
}
