/** Agents reach the relay through the server's own HTTPS: TCP tunnels and private networks, over real connections. */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { WebSocket } from "ws";
import { RELAY_SUBPROTOCOL } from "../../../protocol/relay/datagrams.ts";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import { createTemporaryDir } from "../../harness/directories.ts";
import { createCertificate } from "../../harness/fakes/certificate.ts";
import { createNetwork } from "../../harness/networks/stack.ts";
import { reservePorts } from "../../harness/ports.ts";
import {
  openSocket,
  startEcho,
  startLocalServer,
  type LocalServer,
} from "../../harness/relay/tcp/stack.ts";
import { readAll, readExactly } from "../../harness/relay/tcp/tunnel-port.ts";
import { mintToken, startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { runAgent, runToEnd, type RunningAgent } from "../../harness/tunnel/agent.ts";

const MiB = 1024 * 1024;
const RELAY_PORTS = 12;
const BLOCKED_UDP = new URL("../../harness/preloads/blocked-udp-preload.ts", import.meta.url).href;

let directory: string;
let ca: string;
let httpsPort: number;
let relayPort: number;
let api: TestApi;
let owner: Person;
let token: Buffer;

beforeAll(async () => {
  directory = await createTemporaryDir();
  const authority = createCertificate({ commonName: "Test CA" });
  const { cert, key } = createCertificate({ issuer: authority, names: ["*.tunnels.example"] });
  ca = authority.cert;
  const files = { "ca.pem": ca, "cert.pem": cert, "key.pem": key };
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  httpsPort = await reservePorts(1);
  relayPort = await reservePorts(RELAY_PORTS);
  api = await startApi({
    env: {
      SERVICE_DOMAIN: "tunnels.example",
      API_HOSTS: "localhost,127.0.0.1",
      HTTPS_PORT: String(httpsPort),
      HTTPS_HOST: "127.0.0.1",
      HTTPS_CERTIFICATE_FILE: join(directory, "cert.pem"),
      HTTPS_KEY_FILE: join(directory, "key.pem"),
      LOCAL_RELAY: "on",
      RELAY_PORT_RANGE: `${relayPort}-${relayPort + RELAY_PORTS - 1}`,
    },
  });
  owner = await api.owner();
  const minted = await mintToken(owner, { bandwidthLimitMbps: 10_000 });
  token = Buffer.from(minted.wireBytes, "base64");
});
afterAll(() => api.stop());

interface ServedTunnel extends RunningAgent {
  tunnelId: string;
  publicPort: number;
}

const accessArgs = () => [
  ...["--server", `https://localhost:${httpsPort}`, "--token-file", "TOKEN"],
  ...["--ca-file", join(directory, "ca.pem")],
];

async function serve({ port }: LocalServer): Promise<ServedTunnel> {
  const agent = await runAgent(["tcp", String(port), "--json", ...accessArgs()], { token });
  const { tunnelId, publicPort } = (await agent.event("ready")) as unknown as ServedTunnel;
  return Object.defineProperties(
    { tunnelId, publicPort },
    Object.getOwnPropertyDescriptors(agent),
  ) as ServedTunnel;
}

/** The remote ports of TCP connections to the relay's own port, as Linux lists them. */
async function listPlainConnections(): Promise<string[]> {
  const established = /^\s*\d+: \w+:(\w{4}) \w+:(\w{4}) 01 /;
  const lines = (await readFile("/proc/net/tcp", "utf8")).split("\n");
  return lines.flatMap((line) => {
    const [, local = "", remote = ""] = established.exec(line) ?? [];
    return parseInt(local, 16) === relayPort ? [remote] : [];
  });
}

async function readRelayPid(): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${relayPort}/health`);
  const { pid }: { pid: number } = await answer.json();
  return pid;
}

/** Sends text over HTTPS. @returns what arrives, up to and including the pattern. */
async function request(head: string, until = /\r\n\r\n/, host = "localhost"): Promise<string> {
  const socket = connectTls({ host: "127.0.0.1", port: httpsPort, servername: host, ca });
  await once(socket, "secureConnect");
  socket.write(head.replaceAll("\n", "\r\n"));
  let answer = "";
  for await (const bytes of socket) {
    answer += String(bytes);
    if (until.test(answer)) break;
  }
  return answer;
}

const HANDSHAKE_FIELDS = "Sec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n";
const upgrade = (path: string, protocol: string, fields = HANDSHAKE_FIELDS) =>
  `GET ${path} HTTP/1.1\nHost: localhost\nConnection: upgrade\nUpgrade: ${protocol}\n${fields}\n`;

test("agents get a URL of the server's HTTPS, and a TCP tunnel works with no plain connection to the relay", async () => {
  await using echo = await startEcho();
  await using tunnel = await serve(echo);
  expect(await api.sql("select url, host from relays")).toEqual([
    { url: `wss://localhost:${httpsPort}/relay`, host: "localhost" },
  ]);
  const visitor = await openSocket(tunnel.publicPort);
  visitor.write("hello");
  expect(String(await readExactly(visitor, 5))).toBe("hello");
  if (process.platform === "linux") expect(await listPlainConnections()).toEqual([]);
  visitor.destroy();
});

test("20 MiB each way, more than any window, arrive complete at the same time, and each direction ends separately", async () => {
  await using echo = await startEcho();
  await using tunnel = await serve(echo);
  const visitor = await openSocket(tunnel.publicPort);
  const payload = randomBytes(20 * MiB);
  visitor.end(payload);
  const received = await readAll(visitor);
  const hash = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
  expect(hash(received)).toBe(hash(payload));
  expect(await tunnel.event("connection")).toMatchObject({
    address: "127.0.0.1",
    bytesIn: payload.length,
    bytesOut: payload.length,
  });
});

test("a local server that ends its side first still gets what the visitor sends", async () => {
  let received = 0;
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  await using local = await startLocalServer((socket) => {
    socket.end("bye");
    socket.on("data", (bytes: Buffer) => (received += bytes.length)).on("end", resolve);
  });
  await using tunnel = await serve(local);
  const visitor = await openSocket(tunnel.publicPort);
  expect(String(await readAll(visitor))).toBe("bye");
  visitor.end(Buffer.alloc(MiB));
  await ended;
  expect(received).toBe(MiB);
});

test("a slow reader slows down its sender, and stays connected", async () => {
  let sent = 0;
  await using source = await startLocalServer((socket) => {
    const chunk = Buffer.alloc(MiB);
    const send = (): void => {
      while (socket.write(chunk)) sent += 1;
      socket.once("drain", send);
    };
    send();
  });
  await using tunnel = await serve(source);
  const visitor = await openSocket(tunnel.publicPort);
  visitor.pause();
  // The sender comes to a standstill.
  let before = -1;
  await vi.waitUntil(
    () => {
      const isStill = sent === before && sent > 0;
      before = sent;
      return isStill;
    },
    { ...WAIT_OPTIONS, interval: 500 },
  );
  let received = 0;
  visitor.on("data", (bytes: Buffer) => (received += bytes.length));
  visitor.resume();
  await vi.waitUntil(() => received > 256 * MiB, WAIT_OPTIONS);
  visitor.destroy();
});

test("a reset by the local server ends the visitor's connection, and the other way round", async () => {
  await using local = await startLocalServer((socket) =>
    socket.once("data", () => socket.resetAndDestroy()),
  );
  await using tunnel = await serve(local);
  const visitor = await openSocket(tunnel.publicPort);
  const ended = once(visitor.resume(), "end");
  visitor.write("x");
  await ended;
  visitor.destroy();
  await using echo = await startEcho();
  await using other = await serve(echo);
  const leaving = await openSocket(other.publicPort);
  leaving.write("hello");
  await readExactly(leaving, 5);
  leaving.resetAndDestroy();
  await vi.waitUntil(() => echo.sockets.size === 0, WAIT_OPTIONS);
});

test.each(["udp", "websocket"] as const)("a private network works over %s", async (transport) => {
  await using network = await createNetwork(api, {
    ...{ owner, relayId: "main", serverUrl: `https://localhost:${httpsPort}` },
  });
  const args = ["--ca-file", join(directory, "ca.pem")];
  if (transport === "udp") await network.serve("udp", { args });
  else {
    const env = { NODE_OPTIONS: `--import ${BLOCKED_UDP}`, BLOCKED_UDP_PORT: String(relayPort) };
    await network.serve("websocket", { args, env });
  }
  const client = await network.connectClient();
  client.send("hello through the tunnel");
  await client.waitForPayload("hello through the tunnel");
});

test("underpass doctor reaches the relay at its URL", async () => {
  const { stdout } = await runToEnd(["doctor", ...accessArgs()], { token });
  expect(stdout).toMatch(/^ok +Relay /m);
});

test("an agent without a valid ticket is refused by the relay, and its connection is closed", async () => {
  const url = `wss://127.0.0.1:${httpsPort}/relay/agent`;
  // The types of the client lack `servername`, which it passes on.
  const options = {
    ...{ ca, servername: "localhost" },
    headers: { host: "localhost", authorization: "Bearer a.b.c" },
  };
  const socket = new WebSocket(url, RELAY_SUBPROTOCOL, options);
  const [code] = (await once(socket, "close")) as [number];
  expect(code).toBe(CLOSE.unauthorized);
  const wrongKey = "Authorization: Bearer 1.x\n";
  expect(await request(upgrade("/relay/stream", "underpass-stream.v1", wrongKey))).toMatch(
    /^HTTP\/1\.1 401 /,
  );
});

test.each([
  ["health", upgrade("/relay/health", "websocket")],
  ["metrics", upgrade("/relay/metrics", "websocket")],
  ["a path that leads out", upgrade("/relay/agent/../metrics", "websocket")],
  [
    "a request that is no upgrade",
    "GET /relay/agent HTTP/1.1\nHost: localhost\nConnection: close\n\n",
  ],
  [
    "metrics without upgrade",
    "GET /relay/metrics HTTP/1.1\nHost: localhost\nConnection: close\n\n",
  ],
])("nothing else of the relay is reachable: %s", async (_, head) => {
  const answer = await request(head);
  expect(answer).toMatch(/^HTTP\/1\.1 404 /);
  expect(answer).not.toContain("underpass_relay");
});

test("a request behind a refused one is for the API", async () => {
  const refused = upgrade("/relay/stream", "underpass-stream.v1", "Authorization: Bearer 1.x\n");
  const next = "GET /health HTTP/1.1\nHost: localhost\n\n";
  const answer = await request(refused + next, /"status"/);
  expect(answer).toMatch(/^HTTP\/1\.1 401 [^]*HTTP\/1\.1 200 /);
  expect(answer).not.toContain("epoch");
});

test("at the host of a tunnel the path is the tunnel's", async () => {
  const head = upgrade("/relay/agent", "websocket").replace("localhost", "shop.tunnels.example");
  expect(await request(head, undefined, "shop.tunnels.example")).toMatch(/^HTTP\/1\.1 404 /);
});

test("after a kill -9 of the relay, agents get 503 until it runs again, and tunnels keep their ports", async () => {
  await using echo = await startEcho();
  await using tunnel = await serve(echo);
  const pid = await readRelayPid();
  process.kill(pid, "SIGKILL");
  await tunnel.event("disconnected");
  await tunnel.event("reconnected");
  expect(await readRelayPid()).not.toBe(pid);
  const visitor = await openSocket(tunnel.publicPort);
  visitor.write("again");
  expect(String(await readExactly(visitor, 5))).toBe("again");
  visitor.destroy();
});
