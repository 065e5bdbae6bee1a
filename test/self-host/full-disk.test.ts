/** A tunnel whose object can no longer store anything. */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { mountSmallDisk, type SmallDisk } from "../../chaos/faults/small-disk.ts";
import { createPreparedDir } from "../harness/directories.ts";
import { mintToken, startApi, type TestApi } from "../harness/server/api.ts";
import { WAIT_OPTIONS } from "../harness/timeouts.ts";
import { dial, exchange, getFraming, MessageReader } from "../harness/tunnel/raw-http.ts";
import { expose, type ExposedTunnel } from "../../agent/expose.ts";

const DISK_MIB = 8;

let dataDir: string;
let disk: SmallDisk | undefined;
let api: TestApi;
let tunnel: ExposedTunnel;
const site = createServer((request, response) => {
  if (request.url === "/stream") response.write("half");
  else response.end();
});

beforeAll(async () => {
  dataDir = await createPreparedDir();
  disk = await mountSmallDisk(join(dataDir, "objects/underpass-Tunnel"), DISK_MIB);
  site.listen(0, "127.0.0.1");
  [api] = await Promise.all([startApi({ dataDir }), once(site, "listening")]);
  const { wireBytes } = await mintToken(await api.owner());
  const { port } = site.address() as AddressInfo;
  const token = Buffer.from(wireBytes, "base64");
  tunnel = await expose({ server: api.server.url, token, port, subdomain: "full-disk" });
});
afterAll(async () => {
  await disk?.free();
  await tunnel.close();
  await api.stop();
  site.closeAllConnections();
  site.close();
  await disk?.unmount();
  await rm(dataDir, { recursive: true, force: true });
});

const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: full-disk.localhost\r\n\r\n`;

/** A file system can be mounted by root on Linux only. */
test("a response without a length is cut when the object fails", async (context) => {
  if (!disk) return context.skip();
  const socket = await dial(api.server.port);
  socket.on("error", () => undefined);
  socket.write(request("/stream"));
  const reader = new MessageReader(socket);
  const framing = getFraming((await reader.head())!.headers, "GET", 200);
  expect((await reader.chunk(framing))?.toString()).toBe("half");
  const cut = expect(reader.body(framing)).rejects.toThrow();
  disk.fill();
  await vi.waitUntil(
    async () => (await exchange(api.server.port, request("/"))).status === 503,
    WAIT_OPTIONS,
  );
  await cut;
  socket.destroy();
});
