/** The memory of relay and agent for visitors who read nothing. */
import { expect, test, vi } from "vitest";
import { mintToken } from "../../harness/server/api.ts";
import { readResidentMiB } from "../../harness/server/resident-memory.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { startLocalServer, startTcpStack } from "../../harness/relay/tcp/stack.ts";

const MiB = 1024 * 1024;
const VISITORS = 200;
const GROWTH_MAX_MIB = 24;

test.skipIf(process.platform !== "linux")(
  "many visitors who read nothing cost relay and agent a bounded amount of memory each",
  async () => {
    await using stack = await startTcpStack({ address: "127.0.0.1" });
    const endless = Buffer.alloc(MiB, "a");
    let sent = 0;
    await using server = await startLocalServer((socket) => {
      const writeMore = (): void => {
        let canWrite = true;
        while (canWrite && !socket.destroyed) {
          canWrite = socket.write(endless);
          sent += 1;
        }
      };
      socket.on("drain", writeMore);
      writeMore();
    });
    // With the usual rate: without a limit, it takes long to fill the kernel's buffers of all connections.
    const { wireBytes } = await mintToken(stack.owner);
    const token = Buffer.from(wireBytes, "base64");
    await using tunnel = await stack.serve(server.port, [], { token });
    const pids = [stack.relay.pid, tunnel.child.pid!];
    const before = await Promise.all(pids.map(readResidentMiB));
    const visitors = await Promise.all(Array.from({ length: VISITORS }, () => tunnel.visit()));
    for (const visitor of visitors) visitor.pause();
    // All buffers are full when the local server can no longer write.
    let last = -1;
    await vi.waitUntil(
      () => {
        const isFull = server.sockets.size === VISITORS && sent === last;
        last = sent;
        return isFull;
      },
      { ...WAIT_OPTIONS, interval: 500 },
    );
    const after = await Promise.all(pids.map(readResidentMiB));
    const growthsMiB = after.map((value, i) => Math.round(value - before[i]!));
    expect(Math.max(...growthsMiB), `relay and agent: ${growthsMiB.join(", ")}`).toBeLessThan(
      GROWTH_MAX_MIB,
    );
    for (const visitor of visitors) visitor.destroy();
  },
);
