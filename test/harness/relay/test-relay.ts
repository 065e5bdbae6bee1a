/**
 * A real relay for a test: the same command as `npm run relay`, in a process of its own, with a fake API, which
 * publishes a key of its own, signs tickets with it, and is the other end of the link.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { vi } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import {
  type NetworkStatus,
  RELAY_PING,
  RELAY_PONG,
  RelayToApiMessage,
  type RelayHello,
  type RelayStatus,
  type Revocation,
  type ApiToRelayMessage,
  type AssociationUsage,
} from "../../../protocol/relay/link.ts";
import {
  RELAY_TICKET_TYPE,
  toRelayAudience,
  type NetworkTicket,
  type TunnelTicket,
} from "../../../protocol/relay/ticket.ts";
import { WAIT_OPTIONS } from "../timeouts.ts";
import { NODE_ENVIRONMENT } from "../node-environment.ts";
import { reservePorts } from "../ports.ts";

const MAIN = join(dirname(fileURLToPath(import.meta.url)), "../../../relay/main.ts");
const PORTS = 24;

type Key = Awaited<ReturnType<typeof generateKeyPair>>["privateKey"];

interface TicketOptions {
  /** For a ticket with a wrong JWT `typ`, audience, key or key id. */
  typ?: string;
  audience?: string;
  key?: Key;
  kid?: string;
}

export interface RelayWithFakeApi extends AsyncDisposable {
  id: string;
  /** `ws://127.0.0.1:<port>`, for agents. */
  url: string;
  /** `http://127.0.0.1:<port>` */
  httpUrl: string;
  /** Its own port. */
  port: number;
  /** Ports that no other test uses, for tickets. */
  ports: number[];
  secret: string;
  api: FakeApi;
  /** Its output so far. */
  readonly output: string;
  readonly pid: number;
  /** A signed ticket for a network, with defaults for missing claims. */
  networkTicket(claims?: Partial<NetworkTicket>, options?: TicketOptions): Promise<string>;
  tunnelTicket(claims?: Partial<TunnelTicket>, options?: TicketOptions): Promise<string>;
  /** The value of a metric, with its labels as they are written: `name{label="value"}`. */
  metric(name: string): Promise<number>;
  /** Resolves with the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  /** Starts it again after `stop`, on the same ports and with the same secret. */
  start(): Promise<void>;
}

export interface TestRelayOptions {
  /** Settings that replace the defaults for tests. */
  env?: Record<string, string>;
  id?: string;
  /** The fake API of another relay: both relays connect to it. */
  api?: FakeApi;
}

export async function startTestRelay(options: TestRelayOptions = {}): Promise<RelayWithFakeApi> {
  const id = options.id ?? "test";
  const secret = options.api?.secret ?? randomBytes(32).toString("hex");
  const api = options.api ?? (await startFakeApi(secret));
  const port = await reservePorts(PORTS);
  const ports = Array.from({ length: PORTS - 1 }, (_, at) => port + 1 + at);
  let output = "";
  let child: ChildProcess | undefined;

  async function start(): Promise<void> {
    const started = spawn(process.execPath, [MAIN], {
      env: {
        ...NODE_ENVIRONMENT,
        RELAY_ID: id,
        RELAY_API_URL: api.url,
        RELAY_SECRET: secret,
        RELAY_HOST: "127.0.0.1",
        RELAY_BIND: "127.0.0.1",
        RELAY_PORT_RANGE: `${port}-${port + PORTS - 1}`,
        ...options.env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    child = started;
    let own = "";
    for (const stream of [started.stdout, started.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        own += text;
        output += text;
      });
    }
    await vi.waitUntil(() => {
      if (started.exitCode !== null) throw new Error(`the relay ended:\n${own}`);
      return own.includes('"connected to the API"');
    }, WAIT_OPTIONS);
  }

  async function stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    if (!child || child.exitCode !== null || child.signalCode !== null) return null;
    const exit = once(child, "exit");
    child.kill(signal);
    const [code] = (await exit) as [number | null];
    return code;
  }

  await start();
  return {
    id,
    url: `ws://127.0.0.1:${port}`,
    httpUrl: `http://127.0.0.1:${port}`,
    port,
    ports,
    secret,
    api,
    get output() {
      return output;
    },
    get pid() {
      return child?.pid ?? 0;
    },
    networkTicket: (claims = {}, ticketOptions = {}) =>
      api.ticket(
        id,
        {
          kind: "network",
          server_public_key: randomBytes(32).toString("base64"),
          ...commonClaims(ports),
          ...claims,
        },
        ticketOptions,
      ),
    tunnelTicket: (claims = {}, ticketOptions = {}) =>
      api.ticket(
        id,
        { kind: "tunnel", cidrs: null, ...commonClaims(ports), ...claims },
        ticketOptions,
      ),
    async metric(name) {
      const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
      const line = (await answer.text()).split("\n").find((text) => text.startsWith(`${name} `));
      if (line === undefined) throw new Error(`no metric ${name}`);
      return Number(line.slice(name.length));
    },
    stop,
    start,
    async [Symbol.asyncDispose]() {
      await stop("SIGKILL");
      if (!options.api) await api[Symbol.asyncDispose]();
    },
  };
}

function commonClaims(ports: number[]) {
  return {
    sub: randomUUID(),
    org: randomUUID(),
    port: ports[0]!,
    generation: Date.now(),
    mbps: 1_000,
    nonce: randomBytes(16).toString("hex"),
    exp: Math.floor(Date.now() / 1_000) + 300,
  };
}

export interface FakeApi extends AsyncDisposable {
  url: string;
  secret: string;
  /** Hellos of relays, in order of arrival. */
  hellos: RelayHello[];
  /** Status messages since the start, in order. */
  statuses: RelayStatus[];
  /** The number of open links. */
  readonly links: number;
  /** How often keys were fetched. */
  keyFetches: number;
  /** The newest status of a network, with the newest one of each device, or undefined. */
  network(id: string): NetworkStatus | undefined;
  /** The newest totals of a tunnel, or undefined. */
  tunnel(id: string): AssociationUsage | undefined;
  ticket(
    relayId: string,
    claims: NetworkTicket | TunnelTicket,
    options?: TicketOptions,
  ): Promise<string>;
  /** Sends to all relays. Resolves when they have received it. */
  send(message: ApiToRelayMessage): Promise<void>;
  revoke(revocation: Partial<Revocation> & Pick<Revocation, "kind">): Promise<void>;
  /** Starts an outage: links are cut, and requests fail until `resume`. */
  pause(): void;
  resume(): void;
  /** Replaces the signing key. */
  rotateKey(): Promise<void>;
}

export async function startFakeApi(secret: string): Promise<FakeApi> {
  let keys = await newKeys();
  let isPaused = false;
  const links = new Set<WebSocket>();
  const hellos: RelayHello[] = [];
  const statuses: RelayStatus[] = [];
  const http = createServer((request, response) => {
    if (isPaused) {
      request.socket.destroy();
    } else if (request.url === "/.well-known/jwks.json") {
      api.keyFetches += 1;
      response.setHeader("content-type", "application/json").end(JSON.stringify(keys.jwks));
    } else {
      response.writeHead(404).end();
    }
  });
  const webSockets = new WebSocketServer({ noServer: true });
  http.on("upgrade", (request, socket, head) => {
    const { pathname } = new URL(request.url ?? "", "http://api");
    const isAllowed =
      pathname === "/relays/connect" && request.headers.authorization === `Bearer ${secret}`;
    if (isPaused || !isAllowed) {
      socket.destroy();
      return;
    }
    webSockets.handleUpgrade(request, socket, head, (link) => {
      links.add(link);
      link.on("close", () => links.delete(link));
      link.on("message", (data) => {
        const text = (data as Buffer).toString();
        if (text === RELAY_PING) return link.send(RELAY_PONG);
        const message = RelayToApiMessage.parse(JSON.parse(text));
        if (message.type === "status") {
          statuses.push(message);
          return;
        }
        hellos.push(message);
        link.send(JSON.stringify({ type: "welcome" }));
      });
    });
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");

  const api: FakeApi = {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    secret,
    hellos,
    statuses,
    keyFetches: 0,
    get links() {
      return links.size;
    },
    network(id) {
      const own = statuses.flatMap(({ networks }) => networks).filter((it) => it.networkId === id);
      const devices = own.flatMap((status) => status.devices);
      const newest = new Map(devices.map((device) => [device.publicKey, device]));
      return own.length === 0 ? undefined : { ...own.at(-1)!, devices: [...newest.values()] };
    },
    tunnel: (id) =>
      statuses.flatMap(({ tunnels }) => tunnels).findLast(({ tunnelId }) => tunnelId === id),
    ticket(relayId, { exp, ...claims }, ticketOptions = {}) {
      return new SignJWT(claims)
        .setProtectedHeader({
          alg: "ES256",
          typ: ticketOptions.typ ?? RELAY_TICKET_TYPE,
          kid: ticketOptions.kid ?? keys.kid,
        })
        .setAudience(ticketOptions.audience ?? toRelayAudience(relayId))
        .setIssuedAt()
        .setExpirationTime(exp)
        .sign(ticketOptions.key ?? keys.privateKey);
    },
    async send(message) {
      for (const link of links) {
        link.send(JSON.stringify(message));
        // The relay sends its pong after it has read the message.
        const pong = once(link, "pong");
        link.ping();
        await pong;
      }
    },
    revoke: (revocation) =>
      api.send({
        type: "revoke",
        reason: "unauthorized",
        untilGeneration: Date.now(),
        ...revocation,
      }),
    pause() {
      isPaused = true;
      for (const link of links) link.terminate();
      http.closeAllConnections();
    },
    resume() {
      isPaused = false;
    },
    async rotateKey() {
      keys = await newKeys();
    },
    async [Symbol.asyncDispose]() {
      for (const link of links) link.terminate();
      const closed = once(http, "close");
      http.close();
      http.closeAllConnections();
      await closed;
    },
  };
  return api;
}

async function newKeys() {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const kid = randomUUID();
  const jwk = { ...(await exportJWK(publicKey)), kid, alg: "ES256", use: "sig" };
  return { privateKey, kid, jwks: { keys: [jwk] } };
}
