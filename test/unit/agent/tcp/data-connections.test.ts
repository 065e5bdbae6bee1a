/** How many data connections an agent opens to its relay. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, test, vi } from "vitest";
import { DataConnections } from "../../../../agent/tcp/data-connections.ts";
import { skipRetryDelays } from "../../../harness/relay/scripted-relay.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

const UPGRADED =
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: underpass-stream.v1\r\n\r\n";

afterEach(() => void vi.restoreAllMocks());

test("those that the relay requested and no longer needs are not opened again", async () => {
  skipRetryDelays();
  let opened = 0;
  const open = new Set<Socket>();
  const relay = createServer().on("upgrade", (_, stream) => {
    const socket = stream as Socket;
    opened += 1;
    open.add(socket);
    socket.on("error", () => undefined).on("close", () => open.delete(socket));
    socket.resume().write(UPGRADED);
  });
  relay.listen(0, "127.0.0.1");
  await once(relay, "listening");
  const { port } = relay.address() as AddressInfo;
  const connections = new DataConnections({
    endpoint: {
      url: `ws://127.0.0.1:${port}`,
      authorities: undefined,
      association: 1,
      streamKey: "key",
    },
    idleCount: 1,
    onAssigned: () => undefined,
  });
  const waitForOpen = (count: number) => vi.waitUntil(() => open.size === count, WAIT_OPTIONS);
  await waitForOpen(1);
  connections.open(5);
  await waitForOpen(6);
  // The visitors that they were for have left.
  for (const socket of [...open].slice(1)) socket.destroy();
  await waitForOpen(1);
  for (let reopened = 1; reopened <= 3; reopened += 1) {
    for (const socket of open) socket.destroy();
    await vi.waitUntil(() => opened === 6 + reopened && open.size === 1, WAIT_OPTIONS);
  }
  connections.close();
  relay.close();
});
