import { once } from "node:events";
import { rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readAfterFailedWrites } from "../../../sockets/early-response.ts";
import { connectSocket, setReceiver } from "../../../sockets/socket-reader.ts";
import { createTemporaryDir } from "../../harness/directories.ts";

test("an answer is read to its end although the server has closed and a write fails", async () => {
  const dir = await createTemporaryDir();
  const path = join(dir, "server.sock");
  const server = createServer().listen(path);
  await once(server, "listening");
  const socket = connectSocket({ path });
  readAfterFailedWrites(socket, Infinity);
  socket.on("error", () => undefined);
  const [accepted] = (await once(server, "connection")) as [Socket];
  accepted.end("answer");
  accepted.destroySoon();
  await once(accepted, "close");

  socket.write("more");
  let received = "";
  setReceiver(socket, (bytes) => ((received += Buffer.from(bytes).toString()), true));
  socket.resume();
  await once(socket, "end");
  expect(received).toBe("answer");
  socket.destroy();
  server.close();
  await rm(dir, { recursive: true });
});
