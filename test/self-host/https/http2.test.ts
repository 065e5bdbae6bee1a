/** HTTP/2 of visitors of a complete server, over TLS. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import {
  connect,
  constants,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import { connect as connectTls } from "node:tls";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { WebSocketServer } from "ws";
import { openBrowser } from "../../harness/browser/browser.ts";
import { HttpsTestServer, SERVICE_DOMAIN } from "../../harness/tunnel/https-server.ts";
import { WAIT_MAX_MS, WAIT_OPTIONS } from "../../harness/timeouts.ts";

const LARGE_BYTES = 8 * 1024 * 1024;
const HUGE_BYTES = 64 * 1024 * 1024;
const MODULES = 200;

let server: HttpsTestServer;
let session: ClientHttp2Session;
const origins: Server[] = [];
/** Requests to the local server of the tunnel `shop`. */
let respond: (request: IncomingMessage, response: ServerResponse) => void;
let received: IncomingMessage[];

beforeAll(async () => {
  server = await HttpsTestServer.start({ AUTH_RATE_LIMIT: "off" });
  const shop = await share("shop", (request, response) => {
    received.push(request);
    respond(request, response);
  });
  new WebSocketServer({ server: shop }).on("connection", (socket) => {
    socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  await share("cafe", (_, response) => response.end("cafe"));
});
afterEach(() => session.destroy());
afterAll(async () => {
  for (const origin of origins) {
    origin.closeAllConnections();
    origin.close();
  }
  await server[Symbol.asyncDispose]();
});

async function share(
  subdomain: string,
  listener: (request: IncomingMessage, response: ServerResponse) => void,
) {
  const origin = createServer(listener).listen(0, "127.0.0.1");
  origins.push(origin);
  await once(origin, "listening");
  await server.share(subdomain, (origin.address() as AddressInfo).port);
  return origin;
}

async function openSession(): Promise<ClientHttp2Session> {
  received = [];
  session = connect(`https://127.0.0.1:${server.httpsPort}`, {
    servername: "shop.tunnels.example",
    ca: server.ca,
  });
  session.on("error", () => undefined);
  await once(session, "remoteSettings");
  return session;
}

function request(
  headers: OutgoingHttpHeaders = {},
  options?: { endStream: boolean },
): ClientHttp2Stream {
  const stream = session.request({ ":authority": "shop.tunnels.example", ...headers }, options);
  stream.on("error", () => undefined);
  return stream;
}

async function readResponse(stream: ClientHttp2Stream) {
  const [headers] = (await once(stream, "response")) as [IncomingHttpHeaders];
  return { headers, status: headers[":status"], body: Buffer.concat(await stream.toArray()) };
}

test("large bodies pass unchanged in both directions, and the local server gets a request of HTTP/1.1", async () => {
  await openSession();
  respond = (incoming, response) => void incoming.pipe(response);
  const body = randomBytes(LARGE_BYTES);
  const stream = request({ ":method": "POST", ":path": "/upload?a=b", cookie: ["a=1", "b=2"] });
  stream.end(body);
  const answer = await readResponse(stream);
  expect(answer.status).toBe(200);
  expect(answer.body.equals(body)).toBe(true);
  expect(received[0]).toMatchObject({ httpVersion: "1.1", url: "/upload?a=b" });
  expect(received[0]!.headers).toMatchObject({
    host: "shop.tunnels.example",
    cookie: "a=1; b=2",
    "x-forwarded-proto": "https",
    "x-forwarded-for": "127.0.0.1",
  });
});

test("one session serves several tunnels and the API, as browsers use it for all hosts of a certificate", async () => {
  await openSession();
  respond = (_, response) => response.end("shop");
  const answers = await Promise.all(
    ["shop.tunnels.example", "cafe.tunnels.example", "none.tunnels.example"].map((host) =>
      readResponse(request({ ":authority": host })),
    ),
  );
  expect(answers.slice(0, 2).map(({ body }) => body.toString())).toEqual(["shop", "cafe"]);
  expect(answers[2]!.status).toBe(404);
  const health = await readResponse(
    request({ ":authority": `localhost:${server.httpsPort}`, ":path": "/health" }),
  );
  expect([health.status, health.headers["strict-transport-security"]]).toEqual([
    200,
    expect.stringMatching(/^max-age/),
  ]);
});

test("a response without a length that breaks off is reset", async () => {
  await openSession();
  respond = (_, response) => void response.write("half");
  const stream = request();
  await once(stream, "data");
  received[0]!.socket.destroy();
  await vi.waitUntil(() => stream.destroyed, WAIT_OPTIONS);
  expect(stream.rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR);
});

test("an event arrives at once, and a visitor who cancels its request ends it at the local server", async () => {
  await openSession();
  respond = (_, response) =>
    void response.writeHead(200, { "content-type": "text/event-stream" }).write("data: 1\n\n");
  const stream = request();
  const [data] = (await once(stream, "data")) as [Buffer];
  expect(data.toString()).toBe("data: 1\n\n");
  stream.close();
  await vi.waitUntil(() => received[0]!.socket.destroyed, WAIT_OPTIONS);
});

test("a visitor who reads nothing of a large response stops the local server, and gets all of it in the end", async () => {
  await openSession();
  let sentBytes = 0;
  respond = (_, response) => {
    const piece = Buffer.alloc(64 * 1024);
    const send = (): void => {
      while (sentBytes < HUGE_BYTES && !response.destroyed) {
        sentBytes += piece.length;
        if (!response.write(piece)) return void response.once("drain", send);
      }
      response.end();
    };
    send();
  };
  const stream = request();
  await once(stream, "response");
  // It goes on with other requests meanwhile.
  for (let index = 0; index < 20; index += 1)
    expect((await readResponse(request({ ":authority": "cafe.tunnels.example" }))).status).toBe(
      200,
    );
  expect(sentBytes).toBeLessThan(HUGE_BYTES / 2);
  let readBytes = 0;
  stream.on("data", (data: Buffer) => (readBytes += data.length));
  await once(stream, "end");
  expect(readBytes).toBe(HUGE_BYTES);
});

test("HTTP/2 is offered, and extended CONNECT is not, so that browsers open WebSockets with HTTP/1.1", async () => {
  await openSession();
  expect(session.remoteSettings.enableConnectProtocol).toBe(false);
  const chosen = await Promise.all(
    [["h2", "http/1.1"], ["http/1.1"], undefined].map(async (ALPNProtocols) => {
      const socket = connectTls({
        port: server.httpsPort,
        host: "127.0.0.1",
        servername: "localhost",
        ca: server.ca,
        ALPNProtocols: ALPNProtocols ?? [],
      });
      await once(socket, "secureConnect");
      socket.destroy();
      return socket.alpnProtocol;
    }),
  );
  expect(chosen).toEqual(["h2", "http/1.1", false]);
});

test("a browser loads hundreds of modules with HTTP/2, and its WebSockets open beside it", async () => {
  await openSession();
  respond = ({ url = "/" }, response) => {
    const isPage = url === "/";
    response.setHeader("content-type", isPage ? "text/html" : "text/javascript");
    const scripts = Array.from(
      { length: MODULES },
      (_, index) => `<script type="module" src="/module-${index}.js"></script>`,
    );
    response.end(isPage ? `<script>var loaded = 0</script>${scripts.join("")}` : "loaded += 1");
  };
  await using browser = await openBrowser(SERVICE_DOMAIN);
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const page = await context.newPage();
  await page.goto(`https://shop.${SERVICE_DOMAIN}:${server.httpsPort}/`);
  await page.waitForFunction(`loaded === ${MODULES}`, undefined, { timeout: WAIT_MAX_MS });
  const protocols = await page.evaluate<string[]>(
    "performance.getEntriesByType('resource').map(({ nextHopProtocol }) => nextHopProtocol)",
  );
  expect(new Set(protocols)).toEqual(new Set(["h2"]));
  expect(protocols).toHaveLength(MODULES);
  const echo = await page.evaluate<string>(`new Promise((resolve, reject) => {
    const socket = new WebSocket(location.href.replace("https", "wss"));
    socket.onopen = () => socket.send("hello");
    socket.onmessage = ({ data }) => resolve(data);
    socket.onerror = reject;
  })`);
  expect(echo).toBe("hello");
});
