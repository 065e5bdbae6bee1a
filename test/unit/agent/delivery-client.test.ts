/** The results of posting a delivery to a local server. */
import { once } from "node:events";
import { createServer as createTlsServer } from "node:https";
import { rm } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer, type AddressInfo, type Server } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseForwardTarget } from "../../../agent/webhooks/forward-target.ts";
import { DeliveryClient, type PostResult } from "../../../agent/webhooks/delivery-client.ts";
import type { Delivery } from "../../../protocol/schemas/webhooks.ts";
import { createTemporaryDir } from "../../harness/directories.ts";
import { createCertificate } from "../../harness/fakes/certificate.ts";

const DELIVERY: Delivery = {
  id: "d-1",
  receivedAt: "2026-03-01T12:00:00.000Z",
  headers: {},
  body: "",
  contentType: null,
  cursor: "1",
};

async function deliverTo(server: Server, scheme: "http" | "https"): Promise<PostResult> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return deliver(server, `${scheme}://127.0.0.1:${port}/hook`);
}

async function deliver(server: Server, forward: string): Promise<PostResult> {
  const target = parseForwardTarget(forward)!;
  const local = new DeliveryClient(target, { insecureUpstream: false });
  try {
    return await local.post(DELIVERY, new AbortController().signal);
  } finally {
    await local.close();
    server.close();
  }
}

test("the status decides, even when the response's body is cut off", async () => {
  const server = createServer((socket) => {
    socket.once("data", () => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
      setImmediate(() => socket.destroy());
    });
  });
  expect(await deliverTo(server, "http")).toMatchObject({ status: 200, isUnsent: false });
});

test("a server on a Unix socket gets the delivery, at the path after the socket's", async () => {
  const directory = await createTemporaryDir();
  const path = join(directory, "app.sock");
  const urls: string[] = [];
  const server = createHttpServer(({ url, headers }, response) => {
    urls.push(`${headers.host} ${url}`);
    response.end();
  });
  await once(server.listen(path), "listening");
  const result = await deliver(server, `unix:${path}:/hook?of=shop`);
  expect(result).toMatchObject({ status: 200 });
  expect(urls).toEqual(["localhost /hook?of=shop"]);
  await rm(directory, { recursive: true });
});

test("nothing is sent to a server whose certificate is not trusted, and the problem says so", async () => {
  const server = createTlsServer(createCertificate());
  expect(await deliverTo(server, "https")).toMatchObject({
    status: null,
    isUnsent: true,
    problem: expect.stringContaining("is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)"),
  });
});
