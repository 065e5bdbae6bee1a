/** The local port of `underpass connect` while its tunnel can't be reached. */
import { EventEmitter, getEventListeners, once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createServer, Server, type AddressInfo } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { LocalPort } from "../../../../agent/connect/local-port.ts";
import { reservePort } from "../../../harness/ports.ts";

afterEach(() => void vi.restoreAllMocks());

const createLocalPort = (serverPort: number, listenPort: number | undefined) =>
  new LocalPort({
    server: new URL(`http://127.0.0.1:${serverPort}`),
    authorities: undefined,
    token: Buffer.alloc(1),
    renewal: "",
    tunnel: "shop",
    listen: { host: "127.0.0.1", port: listenPort },
  });

test("an attempt to reach the tunnel leaves no listener behind", async () => {
  const listen = vi.spyOn(AbortSignal.prototype, "addEventListener");
  const port = createLocalPort(await reservePort(), 0);
  const noticed = once(port, "notice");
  await port.start();
  await noticed;
  const signals = listen.mock.contexts as AbortSignal[];
  port.close();
  expect(signals).not.toHaveLength(0);
  expect(signals.flatMap((signal) => getEventListeners(signal, "abort"))).toEqual([]);
});

test("a local port that is closed while it waits for its tunnel does not connect again", async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const port = createLocalPort((server.address() as AddressInfo).port, undefined);
  const noticed = once(port, "notice");
  const started = port.start();
  await noticed;
  port.close();
  await started;
  server.close();
  expect(connections).toBe(1);
});

test("a local port that waits for its tunnel gives the reason once, and says what it waits for", async () => {
  const attempts = new EventEmitter();
  const server = createHttpServer((_, response) => {
    response.writeHead(503).end();
    attempts.emit("attempt");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const port = createLocalPort((server.address() as AddressInfo).port, undefined);
  const notices: string[] = [];
  port.on("notice", (message) => notices.push(message));
  const thirdAttempt = waitForEvents(attempts, "attempt", 3);
  const started = port.start();
  await thirdAttempt;
  port.close();
  await started;
  server.close();
  expect(notices).toEqual([expect.stringContaining("; waiting for the tunnel")]);
});

test("connections that the system could not accept do not end it, and are reported once", async () => {
  const port = createLocalPort(await reservePort(), 0);
  const listen = vi.spyOn(Server.prototype, "listen");
  await port.start();
  const notices: string[] = [];
  port.on("notice", (message) => notices.push(message));
  const [server] = listen.mock.contexts as Server[];
  for (let failures = 0; failures < 2; failures += 1)
    server!.emit("error", new Error("accept EMFILE"));
  port.close();
  expect(notices).toEqual([expect.stringContaining("a local connection was not accepted")]);
});

async function waitForEvents(emitter: EventEmitter, event: string, count: number): Promise<void> {
  for (let seen = 0; seen < count; seen += 1) await once(emitter, event);
}
