/** Each answer to a visitor has an id, under which the owner or the operator finds the request. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import WebSocket from "ws";
import { startApi, type TestApi } from "../../harness/server/api.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { OK, startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import {
  startTunnelOwner,
  type OwnedTunnel,
  type TunnelOwner,
} from "../../harness/tunnel/owned-tunnel.ts";
import { exchange, findHeader, type Answer } from "../../harness/tunnel/raw-http.ts";

let owner: TunnelOwner;
let origin: RawOrigin;
let tunnel: OwnedTunnel;
let api: TestApi;
beforeAll(async () => {
  [owner, origin] = await Promise.all([startTunnelOwner(), startRawOrigin()]);
  tunnel = await owner.expose("request-ids", origin.port);
  api = await startApi();
});
afterAll(async () => {
  await owner.stop();
  await Promise.all([origin.stop(), api.stop()]);
});

const getId = ({ headers }: Pick<Answer, "headers">) => findHeader(headers, "underpass-request-id");

describe("the id of an answer", () => {
  test("of the local server is that of the captured request", async () => {
    const forged = "HTTP/1.1 200 OK\r\nunderpass-request-id: forged\r\ncontent-length: 0\r\n\r\n";
    origin.respond = () => forged;
    const id = getId(await tunnel.visit("/captured"));
    await vi.waitUntil(async () => {
      const { status } = await owner.owner.get(`/inspector/${id}`);
      return status === 200;
    }, WAIT_OPTIONS);
  });

  test("is what the agent reports, of a request and of a WebSocket", async () => {
    origin.respond = () => OK;
    const reported: (string | undefined)[] = [];
    tunnel.agent.events.on("request", ({ requestId }) => reported.push(requestId));
    const ids = [getId(await tunnel.visit("/reported"))];
    const headers = { host: "request-ids.localhost" };
    const visitor = new WebSocket(`ws://127.0.0.1:${owner.api.server.port}/`, { headers });
    visitor.on("error", () => undefined);
    const [, response] = (await once(visitor, "unexpected-response")) as [unknown, IncomingMessage];
    ids.push(String(response.headers["underpass-request-id"]));
    await vi.waitUntil(() => reported.length === 2, WAIT_OPTIONS);
    expect(reported).toEqual(ids);
  });

  test("of a refusal is in the log, and also that of the captured request", async () => {
    await tunnel.put("maintenance", {});
    const answer = await tunnel.visit("/refused");
    await tunnel.remove("maintenance");
    expect(answer.status).toBe(503);
    const id = getId(answer);
    await vi.waitUntil(() => owner.api.server.output.includes(`"requestId":"${id}"`), WAIT_OPTIONS);
    const { status } = await owner.owner.get(`/inspector/${id}`);
    expect(status).toBe(200);
  });

  test("without a tunnel is in the log, in one line with the reason", async () => {
    const { port } = owner.api.server;
    const id = getId(
      await exchange(port, "GET / HTTP/1.1\r\nHost: no-request-ids.localhost\r\n\r\n"),
    );
    const find = () =>
      owner.api.server.output.split("\n").filter((line) => line.includes(`"requestId":"${id}"`));
    await vi.waitUntil(() => find().length > 0, WAIT_OPTIONS);
    expect(find()).toHaveLength(1);
    expect(find()[0]).toContain('"code":"tunnel_not_found"');
  });

  test("is also on the answer that opens a WebSocket, and on its refusal", async () => {
    const url = `ws://127.0.0.1:${owner.api.server.port}/`;
    const socket = new WebSocket(url, { headers: { host: "no-request-ids.localhost" } });
    socket.on("error", () => undefined);
    const id = await new Promise((resolve) =>
      socket.once("unexpected-response", (_, { headers }) =>
        resolve(headers["underpass-request-id"]),
      ),
    );
    expect(id).toMatch(/^[\da-f-]{36}$/);
  });
});
