/** The results of posting a delivery to a local server. */
import { once } from "node:events";
import { createServer as createTlsServer } from "node:https";
import { createServer, type AddressInfo, type Server } from "node:net";
import { expect, test } from "vitest";
import { parseForwardTarget } from "../../../agent/webhooks/forward-target.ts";
import { DeliveryClient, type PostResult } from "../../../agent/webhooks/delivery-client.ts";
import type { Delivery } from "../../../protocol/schemas/webhooks.ts";
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
  const target = parseForwardTarget(`${scheme}://127.0.0.1:${port}/hook`)!;
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

test("nothing is sent to a server whose certificate is not trusted, and the problem says so", async () => {
  const server = createTlsServer(createCertificate());
  expect(await deliverTo(server, "https")).toMatchObject({
    status: null,
    isUnsent: true,
    problem: expect.stringContaining("is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)"),
  });
});
