import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { reset } from "../../../sockets/splice.ts";

test("a connection that is reset while it is being opened is reset at the other end too", async () => {
  const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const accepted = once(server, "connection");
  reset(connect((server.address() as AddressInfo).port, "127.0.0.1"));
  const [socket] = (await accepted) as [Socket];
  const [error] = await once(socket.resume(), "error");
  expect(error).toMatchObject({ code: "ECONNRESET" });
});
