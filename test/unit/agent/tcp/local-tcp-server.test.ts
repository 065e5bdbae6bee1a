/** Connections to the local server of a TCP tunnel. */
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { LocalTcpServer } from "../../../../agent/tcp/local-tcp-server.ts";
import { parseTcpTarget } from "../../../../agent/tcp/tcp-target.ts";

test("one that is canceled before the agent has noticed that it was accepted is reset, as the visitor's was", async () => {
  const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const accepted = once(server, "connection");
  const { port } = server.address() as AddressInfo;
  const done = vi.fn();
  const cancel = new LocalTcpServer(parseTcpTarget(`127.0.0.1:${port}`)!, () => {}).connect(done);
  cancel();
  const [socket] = (await accepted) as [Socket];
  const [error] = (await once(socket.resume(), "error")) as [NodeJS.ErrnoException];
  expect(error.code).toBe("ECONNRESET");
  expect(done).not.toHaveBeenCalled();
});
