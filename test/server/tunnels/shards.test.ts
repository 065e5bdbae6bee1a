import { afterAll, beforeAll, expect, test } from "vitest";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { mintToken, startApi, type Person, type TestApi } from "../../harness/server/api.ts";

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
});
afterAll(() => api.stop());

async function createTunnel(subdomain: string): Promise<Tunnel> {
  const { body } = await owner.post<Tunnel>("/tunnels", { localPort: 3000, subdomain });
  return body;
}

function setShards(id: string, shards: unknown, person = owner) {
  return person.put(`/tunnels/${id}/shards`, { shards });
}

test("a tunnel has one object, or as many as its owner sets", async () => {
  const tunnel = await createTunnel("shards-set");
  expect(tunnel.shards).toBe(1);
  expect(await setShards(tunnel.id, 4)).toMatchObject({
    status: 200,
    body: { id: tunnel.id, shards: 4 },
  });
  const { body } = await owner.get<Tunnel[]>("/tunnels");
  expect(body.find(({ id }) => id === tunnel.id)).toMatchObject({ shards: 4 });
  const [event] = await api.sql(
    "select action from audit_events where resource_id = $1 and action = 'tunnel_shards_set'",
    [tunnel.id],
  );
  expect(event).toBeDefined();
});

test.each([0, 17, 1.5, "4", null])("%j is not a number of objects", async (shards) => {
  const tunnel = await createTunnel(`shards-bad-${String(shards).replace(".", "-")}`);
  expect(await setShards(tunnel.id, shards)).toMatchObject({
    status: 400,
    body: { error: "invalid_request" },
  });
});

test("a tunnel of another organization is unknown", async () => {
  const tunnel = await createTunnel("shards-foreign");
  expect(await setShards(tunnel.id, 2, await api.owner())).toMatchObject({ status: 404 });
});

test("an agent connects to a further object only of the tunnel that it serves, and that has it", async () => {
  const tunnel = await createTunnel("shards-join");
  await setShards(tunnel.id, 2);
  const { wireBytes } = await mintToken(owner);
  const named = { port: 3000, subdomain: "shards-join" };
  expect(await api.connectAgent(wireBytes, { ...named, shard: 1 })).toMatchObject({
    code: CLOSE.invalid_request,
  });
  const further = { ...named, tunnel: tunnel.id };
  expect(await api.connectAgent(wireBytes, { ...further, shard: 1 })).toMatchObject({
    code: CLOSE.going_away,
  });
  const first = await api.connectAgent(wireBytes, named);
  expect(first.code).toBeUndefined();
  const second = await api.connectAgent(wireBytes, { ...further, shard: 1 });
  expect(second.code).toBeUndefined();
  expect(await api.connectAgent(wireBytes, { ...further, shard: 2 })).toMatchObject({
    code: CLOSE.invalid_request,
  });
  const other = await mintToken(owner);
  expect(await api.connectAgent(other.wireBytes, { ...further, shard: 1 })).toMatchObject({
    code: CLOSE.going_away,
  });
  second.socket?.close();
  first.socket?.close();
});
