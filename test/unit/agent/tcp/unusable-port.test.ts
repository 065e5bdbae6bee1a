/** The agent of a TCP tunnel, when the relay can't listen on the tunnel's port. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { WebSocketServer } from "ws";
import { RelayControlConnection } from "../../../../agent/relay-client/control-connection.ts";
import { RELAY_SUBPROTOCOL } from "../../../../protocol/relay/datagrams.ts";
import type { RelayAccess } from "../../../../protocol/schemas/networks.ts";
import { CLOSE } from "../../../../protocol/wire/close-codes.ts";

const PORT = 20_000;
const WELCOME = JSON.stringify({
  type: "welcome",
  kind: "tunnel",
  epoch: "one",
  association: 1,
  streamKey: "AAAA",
  pool: 1,
  publicEndpoint: `127.0.0.1:${PORT}`,
});

afterEach(() => vi.restoreAllMocks());

/** The relay ends the first `welcomed` connections after their welcome, and refuses the port to two further ones. */
async function runAgent(welcomed: number, access: Partial<RelayAccess>) {
  const { setTimeout } = globalThis;
  // The agent retries without its delays.
  vi.spyOn(globalThis, "setTimeout").mockImplementation((run: () => void, ms = 0) =>
    setTimeout(run, ms <= 5_000 ? 0 : ms),
  );
  const server = new WebSocketServer({
    port: 0,
    host: "127.0.0.1",
    handleProtocols: () => RELAY_SUBPROTOCOL,
  });
  let connections = 0;
  const { promise: refusedTwice, resolve } = Promise.withResolvers<void>();
  server.on("connection", (socket) => {
    connections += 1;
    if (connections === welcomed + 2) resolve();
    if (connections > welcomed) return socket.close(CLOSE.port_unusable, "port_unusable: in use");
    socket.send(WELCOME, () => socket.close(CLOSE.going_away));
  });
  await once(server, "listening");
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const getAccess = vi.fn((_signal: AbortSignal, _unusablePort?: number) =>
    Promise.resolve({
      ticket: "ticket",
      expires_at: new Date(Date.now() + 300_000).toISOString(),
      relay: { id: "main", url, host: "127.0.0.1" },
      port: PORT,
      ...access,
    }),
  );
  const control = new RelayControlConnection({ authorities: undefined, getAccess });
  control.start();
  const [[reason, , code]] = await Promise.all([once(control, "retrying"), refusedTwice]);
  control.close();
  for (const socket of server.clients) socket.terminate();
  server.close();
  await once(server, "close");
  return { reason, code, reported: getAccess.mock.calls.map(([, port]) => port) };
}

test("it asks for another port when its first ticket for the port says that it can have one", async () => {
  const { reported } = await runAgent(0, { port_replaceable: true });
  expect(reported).toEqual([undefined, PORT]);
});

test("it waits for a port that can't be replaced, and says why", async () => {
  const refused = { code: CLOSE.port_unusable, reason: "in use", reported: [undefined] };
  expect(await runAgent(0, { port_replaceable: false })).toEqual(refused);
});

test("it waits for a port that it has served", async () => {
  const { reported, code } = await runAgent(1, { port_replaceable: true });
  expect(code).toBe(CLOSE.port_unusable);
  expect(reported).toEqual([undefined]);
});
