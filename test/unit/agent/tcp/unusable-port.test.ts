/** The agent of a TCP tunnel, when the relay can't listen on the tunnel's port. */
import { once } from "node:events";
import { afterEach, expect, test, vi } from "vitest";
import { RelayControlConnection } from "../../../../agent/relay-client/control-connection.ts";
import type { RelayAccess } from "../../../../protocol/schemas/networks.ts";
import { CLOSE } from "../../../../protocol/wire/close-codes.ts";
import {
  buildRelayAccess,
  PUBLIC_PORT,
  sendWelcome,
  skipRetryDelays,
  startScriptedRelay,
} from "../../../harness/relay/scripted-relay.ts";

afterEach(() => vi.restoreAllMocks());

/** The relay ends the first `welcomed` connections after their welcome, and refuses the port to two further ones. */
async function runAgent(welcomed: number, access: Partial<RelayAccess>) {
  skipRetryDelays();
  let connections = 0;
  const { promise: refusedTwice, resolve } = Promise.withResolvers<void>();
  const relay = await startScriptedRelay((socket) => {
    connections += 1;
    if (connections === welcomed + 2) resolve();
    if (connections > welcomed) return socket.close(CLOSE.port_unusable, "port_unusable: in use");
    sendWelcome(socket, () => socket.close(CLOSE.going_away));
  });
  const getAccess = vi.fn((_signal: AbortSignal, _unusablePort?: number) =>
    Promise.resolve({ ...buildRelayAccess(relay.port), ...access }),
  );
  const control = new RelayControlConnection({ authorities: undefined, getAccess });
  control.start();
  const [[reason, , code]] = await Promise.all([once(control, "retrying"), refusedTwice]);
  control.close();
  await relay.stop();
  return { reason, code, reported: getAccess.mock.calls.map(([, port]) => port) };
}

test("it asks for another port when its first ticket for the port says that it can have one", async () => {
  const { reported } = await runAgent(0, { port_replaceable: true });
  expect(reported).toEqual([undefined, PUBLIC_PORT]);
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
