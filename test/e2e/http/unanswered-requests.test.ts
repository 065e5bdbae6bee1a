/** One visitor sends requests that the local server does not answer. Others are served all the time. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { expose, type ExposedTunnel } from "../../../agent/expose.ts";
import { IN_FLIGHT_MAX_REQUESTS } from "../../../durable-objects/tunnel/proxy/in-flight.ts";
import { mintToken, newAddress, startApi, type TestApi } from "../../harness/server/api.ts";
import { dial, exchange, findHeader, MessageReader } from "../../harness/tunnel/raw-http.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

const ATTACKS = 1_100;
const SOURCE_MAX_REQUESTS = IN_FLIGHT_MAX_REQUESTS / 2;

const unanswered = new Set<ServerResponse>();
const site = createServer((request, response) => {
  if (request.url !== "/never") return void response.end("served");
  unanswered.add(response);
  response.on("close", () => unanswered.delete(response));
});

let api: TestApi;
let tunnel: ExposedTunnel;

beforeAll(async () => {
  site.listen(0, "127.0.0.1");
  [api] = await Promise.all([startApi({ kind: "public" }), once(site, "listening")]);
  const { wireBytes } = await mintToken(await api.owner());
  tunnel = await expose({
    server: api.server.url,
    token: Buffer.from(wireBytes, "base64"),
    subdomain: "unanswered",
    port: (site.address() as AddressInfo).port,
  });
});
afterAll(async () => {
  await tunnel.close();
  site.closeAllConnections();
  site.close();
  await api.stop();
});

function buildRequest(path: string, address: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: unanswered.localhost\r\nX-Forwarded-For: ${address}\r\n\r\n`;
}

async function expectServed(): Promise<void> {
  const { status, body } = await exchange(api.server.port, buildRequest("/", newAddress()));
  expect([status, body.toString()]).toEqual([200, "served"]);
}

test("1,100 unanswered requests of one source leave the tunnel to others, and nothing remains of them", async () => {
  const attacker = newAddress();
  for (let round = 0; round < 2; round += 1) {
    const sockets: Socket[] = [];
    const refusals: string[] = [];
    for (let i = 0; i < ATTACKS; i += 1) {
      const socket = await dial(api.server.port);
      socket.on("error", () => undefined);
      sockets.push(socket);
      void new MessageReader(socket).answer("GET").then(
        ({ status, headers }) => refusals.push(`${status} ${findHeader(headers, "retry-after")}`),
        () => undefined,
      );
      socket.write(buildRequest("/never", attacker));
    }
    await vi.waitUntil(() => refusals.length === ATTACKS - SOURCE_MAX_REQUESTS, WAIT_OPTIONS);
    expect(new Set(refusals)).toEqual(new Set(["503 2"]));
    expect(unanswered.size).toBe(SOURCE_MAX_REQUESTS);
    await expectServed();
    // A FIN, as `curl -m 1` sends it.
    for (const socket of sockets) socket.end();
    await expectServed();
    await vi.waitUntil(() => unanswered.size === 0, WAIT_OPTIONS);
    for (const socket of sockets) socket.destroy();
  }
});
