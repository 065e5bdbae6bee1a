/** HTTPS of the server itself: agents, visitors and callers of the API, over real connections. */
import { randomBytes, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { request as requestHttps } from "node:https";
import { connect, type AddressInfo } from "node:net";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { HttpsTestServer } from "../../harness/tunnel/https-server.ts";
import { reservePorts } from "../../harness/ports.ts";
import { startServer } from "../../harness/server/server.ts";
import type { RunningAgent } from "../../harness/tunnel/agent.ts";
import { exchange } from "../../harness/tunnel/raw-http.ts";

const HOST = "shop.tunnels.example";
const LARGE_BYTES = 8 * 1024 * 1024;

let server: HttpsTestServer;
let httpsPort: number;
let metricsPort: number;
let ca: string;
/** Answers with the body that it gets, and echoes the messages of WebSockets. */
let origin: Server;
/** The headers of the last request. */
let received: IncomingMessage["headers"];
let agent: RunningAgent;

beforeAll(async () => {
  metricsPort = await reservePorts(1);
  server = await HttpsTestServer.start({ METRICS_PORT: String(metricsPort) });
  ({ httpsPort, ca } = server);
  origin = createServer((request, response) => {
    received = request.headers;
    request.pipe(response);
  }).listen(0, "127.0.0.1");
  new WebSocketServer({ server: origin }).on("connection", (socket) => {
    socket.on("message", (data) => socket.send(data));
  });
  await once(origin, "listening");
  agent = await server.share("shop", (origin.address() as AddressInfo).port);
});
afterAll(async () => {
  origin.closeAllConnections();
  origin.close();
  await server[Symbol.asyncDispose]();
});

async function visit(path = "/", body: Uint8Array = Buffer.alloc(0), servername = HOST) {
  const sent = requestHttps({
    ...{ host: "127.0.0.1", port: httpsPort, servername, ca, path, method: "POST" },
    headers: { host: `${HOST}:${httpsPort}`, "content-length": body.length },
  });
  sent.end(body);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return { status: response.statusCode, body: Buffer.concat(await response.toArray()) };
}

test("the agent connects over HTTPS, and its public URL is an HTTPS one", async () => {
  expect(await agent.event("ready")).toMatchObject({ url: `https://${HOST}:${httpsPort}` });
  const { status, body } = await visit("/cart", Buffer.from("two pears"));
  expect([status, body.toString()]).toEqual([200, "two pears"]);
  expect(received).toMatchObject({
    "x-forwarded-proto": "https",
    "x-forwarded-for": "127.0.0.1",
  });
});

test("large bodies pass unchanged in both directions", async () => {
  const body = randomBytes(LARGE_BYTES);
  const answer = await visit("/upload", body);
  expect(answer.status).toBe(200);
  expect(answer.body.equals(body)).toBe(true);
});

test.each(["localhost", "another.tunnels.example"])(
  "the Host header decides about the tunnel, also after a handshake for %s",
  async (servername) => {
    const { status, body } = await visit("/", Buffer.from("two pears"), servername);
    expect([status, body.toString()]).toEqual([200, "two pears"]);
  },
);

test("WebSockets pass", async () => {
  // The types of the client lack `servername`, which it passes on.
  const options = { servername: HOST, headers: { host: HOST }, ca };
  const socket = new WebSocket(`wss://127.0.0.1:${httpsPort}/`, [], options);
  await once(socket, "open");
  socket.send("hello");
  const [data] = (await once(socket, "message")) as [Buffer];
  expect(data.toString()).toBe("hello");
  socket.close();
  await once(socket, "close");
});

test("a client that leaves, or sends no TLS at all, is let go", async () => {
  const plain = connect(httpsPort, "127.0.0.1");
  plain.end("GET / HTTP/1.1\r\n\r\n");
  plain.resume();
  await once(plain, "close");
  const { status } = await visit();
  expect(status).toBe(200);
});

test("versions of TLS that are not secure are refused", async () => {
  const old = connectTls({
    ...{ host: "127.0.0.1", port: httpsPort, servername: HOST, ca },
    ...{ minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" },
  });
  const [error] = (await once(old, "error")) as [Error];
  expect(error.message).toMatch(/version/i);
});

test.each([
  [
    "shop.tunnels.example",
    "/a?b=c",
    (port: number) => `https://shop.tunnels.example:${port}/a?b=c`,
  ],
  ["localhost:8080", "/", (port: number) => `https://localhost:${port}/`],
])("plain HTTP to %s is redirected to HTTPS", async (host, path, getTarget) => {
  const { status, headers } = await exchange(
    server.redirectPort,
    `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 0\r\n\r\n`,
  );
  expect(status).toBe(308);
  expect(headers).toContainEqual(["Location", getTarget(httpsPort)]);
});

test.each(["GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n"])(
  "%j is not redirected",
  async (request) => {
    expect((await exchange(server.redirectPort, request)).status).toBe(400);
  },
);

test("the API sends browsers to HTTPS only, from the first answer on", async () => {
  const sent = requestHttps({
    host: "127.0.0.1",
    port: httpsPort,
    servername: "localhost",
    ca,
    path: "/health",
  });
  sent.setHeader("host", `localhost:${httpsPort}`);
  sent.end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  response.resume();
  expect(response.statusCode).toBe(200);
  expect(response.headers["strict-transport-security"]).toMatch(/^max-age=\d+/);
});

test("the metrics have the time at which the certificate expires", async () => {
  const secrets = await readFile(join(server.api.server.dataDir, "secrets.json"), "utf8");
  const { METRICS_TOKEN } = JSON.parse(secrets) as Record<string, string>;
  const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
  const response = await fetch(`http://127.0.0.1:${metricsPort}/metrics`, { headers });
  const metrics = await response.text();
  const [, seconds] = /certificate_expiry_timestamp_seconds\{source="file"\} (\S+)/.exec(metrics)!;
  const { validToDate } = new X509Certificate(await readFile(join(server.directory, "cert.pem")));
  expect(Number(seconds) * 1_000).toBe(validToDate.getTime());
});

test("a certificate that can't be used prevents the start with the setting's name", async () => {
  const files = {
    HTTPS_CERTIFICATE_FILE: join(server.directory, "none.pem"),
    HTTPS_KEY_FILE: join(server.directory, "key.pem"),
  };
  const env = { HTTPS_PORT: "0", ...files };
  await expect(startServer({ env })).rejects.toThrow(
    /HTTPS_CERTIFICATE_FILE: .*none\.pem can't be read/,
  );
  env.HTTPS_CERTIFICATE_FILE = join(server.directory, "ca.pem");
  await expect(startServer({ env })).rejects.toThrow(
    /HTTPS_KEY_FILE: not a certificate and its private key/,
  );
});
