/** What a stranger can hold of a relay's own port, to which agents connect. */
import { once } from "node:events";
import { connect, Server, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { WebSocket } from "ws";
import { RELAY_SUBPROTOCOL } from "../../../protocol/relay/datagrams.ts";
import type { Associations } from "../../../relay/associations.ts";
import { Metrics } from "../../../relay/metrics.ts";
import { RelayServer, type RelayServerOptions } from "../../../relay/server.ts";
import { TicketVerifier } from "../../../relay/tickets.ts";
import { CF_BLOB_HEADER } from "../../../shared/client-address.ts";
import { createTemporaryDir } from "../../harness/directories.ts";
import { reservePorts } from "../../harness/ports.ts";

const control = {
  associations: {} as Associations,
  metrics: new Metrics(),
  log: { info() {}, warn() {}, error() {} },
  // The API's keys never arrive, so each ticket is verified without end.
  tickets: new TicketVerifier({
    relayId: "relay",
    fetchKeys: () => new Promise(() => undefined),
    now: Date.now,
  }),
};
let server: RelayServer;
let port: number;
const sockets: Socket[] = [];
const agents: WebSocket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const agent of agents.splice(0)) agent.terminate();
  await server.close();
});

async function start(limits: RelayServerOptions["limits"], maxConnections = 64): Promise<void> {
  port = await reservePorts(1);
  server = new RelayServer({
    ...control,
    ...{ port, limits, maxConnections, bind: "127.0.0.1", secret: "the operator's" },
    health: () => ({}),
    collectMetrics: () => [],
  });
  await server.listen();
}

/** @param localAddress Linux has as many loopback addresses as a test needs. */
async function open(localAddress = "127.0.0.1"): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", localAddress }).on("error", () => undefined);
  sockets.push(socket);
  await once(socket, "connect");
  return socket.resume();
}

test("connections beyond a source's half are closed at once, and earlier ones and those of others are served", async () => {
  await start({}, 4);
  const [first] = [await open(), await open()];
  await once(await open(), "close");
  const other = await open("127.0.0.2");
  const served = once(other, "data");
  other.write("GET /health HTTP/1.1\r\nHost: relay\r\n\r\n");
  expect(String((await served)[0])).toMatch(/^HTTP\/1.1 200 /);
  const answer = once(first, "data");
  first.write("GET /health HTTP/1.1\r\nHost: relay\r\n\r\n");
  expect(String((await answer)[0])).toMatch(/^HTTP\/1.1 200 /);
});

test("a connection that the system could not accept does not end the relay", async () => {
  const listen = vi.spyOn(Server.prototype, "listen");
  await start({});
  const own = listen.mock.contexts.at(-1) as Server;
  listen.mockRestore();
  own.emit("error", new Error("accept ENOMEM"));
  const served = once(await open(), "data");
  sockets[0]!.write("GET /health HTTP/1.1\r\nHost: relay\r\n\r\n");
  expect(String((await served)[0])).toMatch(/^HTTP\/1.1 200 /);
});

test("connections that send no complete head in time are closed", async () => {
  await start({ headersMaxMs: 50, headersCheckMs: 10 });
  const [silent, slow] = [await open(), await open()];
  slow.write("GET /agent HTTP/1.1\r\nHost: ");
  await Promise.all([once(silent, "close"), once(slow, "close")]);
});

test.each([
  ["localhost", "", 200],
  ["127.0.0.1:8790", "", 200],
  ["[::1]:8790", "", 200],
  ["rebound.example", "", 404],
  ["localhost.rebound.example:8790", "", 404],
  ["relay.example", "Authorization: Bearer the operator's\r\n", 200],
])(
  "a program on this machine gets the metrics of Host %s with %j: %i",
  async (host, header, status) => {
    await start({});
    const socket = await open();
    const answered = once(socket, "data");
    socket.write(`GET /metrics HTTP/1.1\r\nHost: ${host}\r\n${header}\r\n`);
    expect(String((await answered)[0])).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  },
);

test("agents beyond the tickets that are verified at a time get 503", async () => {
  await start({ maxPendingUpgrades: 4 });
  const agent = () => {
    const headers = { authorization: "Bearer a.b.c" };
    const socket = new WebSocket(`ws://127.0.0.1:${port}/agent`, RELAY_SUBPROTOCOL, { headers });
    agents.push(socket);
    return socket;
  };
  await Promise.all([once(agent(), "open"), once(agent(), "open")]);
  const [error] = (await once(agent(), "error")) as [Error];
  expect(error.message).toContain("503");
});

test("a connection whose upgrade is refused is closed, also when the client does not close it", async () => {
  await start({});
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  sockets.push(socket);
  socket
    .resume()
    .write(
      "GET /nothing HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
  await once(socket, "end");
  // The kernel answers what is sent to a closed connection with a reset.
  const closed = once(socket, "error");
  const sending = setInterval(() => socket.write("x"), 10);
  await closed;
  clearInterval(sending);
});

describe("on the front proxy's socket", () => {
  let path: string;
  beforeEach(async () => {
    path = join(await createTemporaryDir(), "relay.sock");
  });

  test("agents are told apart by the address that it has seen", async () => {
    await start({ maxPendingUpgrades: 4 });
    await server.listenToFrontProxy(path);
    const agent = (clientIp: string) => {
      const headers = {
        authorization: "Bearer a.b.c",
        [CF_BLOB_HEADER]: JSON.stringify({ clientIp }),
      };
      const url = `ws+unix:${path}:/relay/agent`;
      const socket = new WebSocket(url, RELAY_SUBPROTOCOL, { headers });
      agents.push(socket);
      return socket;
    };
    const [first, second] = [agent("192.0.2.1"), agent("192.0.2.1")];
    await Promise.all([once(first, "open"), once(second, "open")]);
    const [error] = (await once(agent("192.0.2.1"), "error")) as [Error];
    expect(error.message).toContain("503");
    await once(agent("192.0.2.2"), "open");
  });

  test.each(["/health", "/metrics", "/relay/health", "/relay/metrics", "/relay/agent"])(
    "there is no answer to GET %s",
    async (target) => {
      await start({});
      await server.listenToFrontProxy(path);
      const socket = connect({ path });
      socket.write(
        `GET ${target} HTTP/1.1\r\nHost: relay\r\nAuthorization: Bearer the operator's\r\n\r\n`,
      );
      const answer = Buffer.concat(await socket.toArray()).toString();
      expect(answer).toMatch(/^HTTP\/1\.1 404 /);
    },
  );
});
