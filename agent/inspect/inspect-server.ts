/**
 * The local inspector: a read-only HTTP server that tells other programs on this machine what the tunnels of this agent do.
 * Pages of other sites can't read it: it sends no CORS headers, and refuses the names of other sites that resolve to this
 * machine.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { isIP } from "node:net";
import { once } from "node:events";
import type { ListenAddress } from "../connect/listen-address.ts";
import type { InspectedTunnels, TunnelDescription } from "./inspected-tunnels.ts";
import { isLoopback, parseHostName, stripBrackets } from "../../shared/hosts.ts";
import { escapeControlsInJson } from "../../shared/text/escape-controls.ts";
import { escapeHtml } from "../../shared/text/escape-html.ts";
import { getErrorCode } from "../../shared/error-message.ts";

export const DEFAULT_INSPECT_ADDRESS: ListenAddress = { host: "127.0.0.1", port: 4040 };
/** How many ports are tried from the given one on. */
const PORTS_TRIED = 100;

export class InspectServer {
  readonly #tunnels: InspectedTunnels;
  readonly #server: Server;
  readonly #host: string;

  constructor(tunnels: InspectedTunnels, host: string) {
    this.#tunnels = tunnels;
    this.#host = host;
    this.#server = createServer((request, response) => this.#respond(request, response));
  }

  /**
   * Listens at the port, or at the next one that is free.
   * @returns the server's URL. @throws the system's error when it can listen at none.
   */
  async listen(port: number): Promise<string> {
    for (let tried = 1; ; tried += 1) {
      try {
        this.#server.listen(port, this.#host);
        await once(this.#server, "listening");
        break;
      } catch (error) {
        const isTaken = getErrorCode(error) === "EADDRINUSE";
        if (!isTaken || tried === PORTS_TRIED || port >= 65_535) throw error;
        port += 1;
      }
    }
    // A connection that the system can't accept (EMFILE, ENFILE) must not end the agent; the server keeps listening.
    this.#server.on("error", () => undefined);
    // The tunnel keeps the process running; this server does not.
    this.#server.unref();
    const address = this.#server.address();
    const listening = typeof address === "object" && address ? address.port : port;
    return `http://${isIP(this.#host) === 6 ? `[${this.#host}]` : this.#host}:${listening}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #respond(request: IncomingMessage, response: ServerResponse): void {
    if (!this.#isAllowedHost(request.headers.host))
      return send(response, 403, {
        error: "this server only answers requests to a name or address of this machine",
      });
    if (request.method !== "GET" && request.method !== "HEAD")
      return send(response, 405, { error: "only GET and HEAD are supported" });
    switch (request.url?.split("?")[0]) {
      case "/":
        return sendPage(response, this.#tunnels);
      case "/api/tunnels":
        return send(response, 200, { tunnels: this.#tunnels.listTunnels() });
      case "/api/requests":
        return send(response, 200, { requests: this.#tunnels.listRequests() });
      case "/api/connections":
        return send(response, 200, { connections: this.#tunnels.listConnections() });
      default:
        return send(response, 404, {
          error: "use /api/tunnels, /api/requests or /api/connections",
        });
    }
  }

  /** Refuses names of other sites, which a hostile page could let resolve to this machine (DNS rebinding). */
  #isAllowedHost(text: string | undefined): boolean {
    const hostname = parseHostName(text);
    if (hostname === null) return false;
    return isLoopback(hostname) || stripBrackets(hostname) === this.#host;
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  // Texts of visitors don't control the terminal of someone who reads this with curl.
  response.end(`${escapeControlsInJson(JSON.stringify(body))}\n`);
}

function sendPage(response: ServerResponse, tunnels: InspectedTunnels): void {
  response.writeHead(200, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy":
      "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
  });
  const connected = tunnels.listPages().map(formatTunnel).join("\n");
  response.end(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Underpass</title>
<main>
<h1>Underpass</h1>
${connected === "" ? "<p>No tunnel is connected yet.</p>" : `<ul>\n${connected}\n</ul>`}
<p>For programs: <a href="/api/tunnels">/api/tunnels</a>, <a href="/api/requests">/api/requests</a>, <a href="/api/connections">/api/connections</a></p>
</main>
</html>
`);
}

/** Names and URLs are those of the server, which may be hostile. */
function formatTunnel([tunnel, page]: [TunnelDescription, page: URL]): string {
  const name = escapeHtml(tunnel.name);
  const isTcp = tunnel.protocol === "tcp";
  const url = escapeHtml(tunnel.publicUrl ?? tunnel.connect ?? "");
  const address = isTcp ? url : `<a href="${url}">${url}</a>`;
  const text = isTcp ? "the tunnel in the dashboard" : "captured requests";
  const link = `<a href="${escapeHtml(page.href)}">${text}</a>`;
  return `<li>${name} (${tunnel.state}): ${address}, ${link}</li>`;
}
