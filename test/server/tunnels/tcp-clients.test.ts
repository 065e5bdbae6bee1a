/** Clients of a TCP tunnel, which reach it without its public port (`underpass connect`). */
import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { STREAMS_SUBPROTOCOL } from "../../../protocol/wire/frames.ts";
import { mintToken, startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import { RelayLink } from "../../harness/server/relay-link.ts";

let api: TestApi;
let owner: Person;
let relay: RelayLink;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
  relay = await RelayLink.connect(api.server, { firstPort: 40_001, lastPort: 40_300 });
});
afterAll(async () => {
  relay[Symbol.dispose]();
  await api.stop();
});

function createSocket(bearer: string | undefined, tunnel: string, protocol = STREAMS_SUBPROTOCOL) {
  return new WebSocket(
    `ws://127.0.0.1:${api.server.port}/agent/streams?tunnel=${tunnel}`,
    [protocol],
    { headers: bearer === undefined ? {} : { authorization: `Bearer ${bearer}` } },
  );
}

function openClient(...client: Parameters<typeof createSocket>) {
  const socket = createSocket(...client);
  return new Promise<string>((resolve, reject) => {
    socket.on("error", reject);
    // A client that answers a ping is accepted: the server waits for its hello.
    socket.on("open", () => setTimeout(() => socket.ping(), 0));
    socket.on("pong", () => resolve("accepted"));
    socket.on("close", (_, reason) => resolve(reason.toString().split(":")[0]!));
  }).finally(() => socket.terminate());
}

test("a client requires a token that allows the tunnel's name", async () => {
  const { wireBytes } = await mintToken(owner);
  const subdomain = "ledger-db";
  const tcp = { localPort: 5432, protocol: "tcp", subdomain };
  const { body } = await owner.post<Tunnel>("/tunnels", tcp);
  expect(await openClient(wireBytes, body.id)).toBe("accepted");
  expect(await openClient(wireBytes, subdomain)).toBe("accepted");
  const confined = await mintToken(owner, { allowedSubdomains: [subdomain] });
  expect(await openClient(confined.wireBytes, body.id)).toBe("accepted");
  const other = await mintToken(owner, { allowedSubdomains: ["something-else"] });
  expect(await openClient(other.wireBytes, body.id)).toBe("forbidden");
  expect(await openClient(undefined, body.id)).toBe("unauthorized");
  expect(await openClient("invalid", body.id)).toBe("unauthorized");
  expect(await openClient(wireBytes, body.id, "underpass.v1")).toBe("unsupported_version");
  const foreignToken = await mintToken(await api.owner());
  expect(await openClient(foreignToken.wireBytes, body.id)).toBe("tunnel_deleted");
  expect(await openClient(wireBytes, "unknown-name")).toBe("tunnel_deleted");
  expect(await openClient(wireBytes, "..")).toBe("invalid_request");
  const http = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
  expect(await openClient(wireBytes, http.body.id)).toBe("invalid_request");
  await owner.put(`/tunnels/${body.id}/ip-allowlist`, { cidrs: ["192.0.2.0/24"] });
  expect(await openClient(wireBytes, body.id)).toBe("forbidden");
  await owner.delete(`/tunnels/${body.id}/ip-allowlist`);
  await owner.post(`/tunnels/${body.id}/stop`);
  expect(await openClient(wireBytes, body.id)).toBe("tunnel_stopped");
  await owner.delete(`/tunnels/${body.id}`);
  expect(await openClient(wireBytes, body.id)).toBe("tunnel_deleted");
});

test("a client is disconnected when its token is revoked, whichever token serves the tunnel", async () => {
  const colleague = await api.colleague(owner, "member");
  const tcp = { localPort: 5432, protocol: "tcp", subdomain: "orders-db" };
  const { body: tunnel } = await owner.post<Tunnel>("/tunnels", tcp);
  const [serving, revoked, left] = [
    await mintToken(owner),
    await mintToken(owner),
    await mintToken(colleague),
  ];
  const [stays, ...others] = await Promise.all(
    [serving, revoked, left].map(async ({ wireBytes }) => {
      const socket = createSocket(wireBytes, tunnel.id);
      await once(socket, "open");
      return socket;
    }),
  );
  const reasons = others.map(async (socket) => {
    const [, reason] = (await once(socket, "close")) as [number, Buffer];
    return reason.toString();
  });
  expect((await owner.delete(`/tokens/${revoked.nonce}`)).status).toBe(200);
  const membership = `/orgs/${owner.orgId}/members/${colleague.userId}`;
  expect((await owner.delete(membership)).status).toBe(200);
  const reason = "unauthorized: the token was revoked";
  expect(await Promise.all(reasons)).toEqual([reason, reason]);
  stays!.ping();
  await once(stays!, "pong");
  stays!.terminate();
});
