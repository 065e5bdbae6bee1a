/** The ports of relays: which organization gets how many, and when others get them. Networks stand for tunnels too. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import type {
  NetworkConfig,
  PrivateNetwork,
  RelayAccess,
} from "../../../protocol/schemas/networks.ts";
import { startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import {
  createNetwork,
  enroll,
  newKey,
  registerServer,
} from "../../harness/server/private-networks.ts";
import { RelayLink } from "../../harness/server/relay-link.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

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

const requestTicket = (id: string) =>
  owner.post<RelayAccess & ErrorBody>(`/private-networks/${id}/relay-ticket`);

/** Connects another relay with few ports, which no other test uses. */
function connectRelay(count: number): Promise<RelayLink> {
  const relayId = `relay-${crypto.randomUUID().slice(0, 8)}`;
  return RelayLink.connect(api.server, { relayId, firstPort: 50_001, lastPort: 50_000 + count });
}

describe("ports of a relay", () => {
  test("are all for the only organization of a server, until there is another one", async () => {
    using few = await connectRelay(3);
    const { relayId: relay_id } = few.hello;
    const isDeleted = "update organizations set deleted_at = $1 where id <> $2";
    await api.sql(isDeleted, [new Date(), owner.orgId]);
    const networks = await Promise.all([1, 2, 3].map(() => createNetwork(owner)));
    for (const { id } of networks) await registerServer(owner, id, { relay_id });
    await api.sql(isDeleted, [null, owner.orgId]);
    for (const { id } of networks) await owner.delete(`/private-networks/${id}`);
  });

  test("are refused when all are reserved, and not available to others for a day after release", async () => {
    using few = await connectRelay(1);
    const { relayId: relay_id } = few.hello;
    const other = await api.owner();
    const [own, foreign] = [await createNetwork(owner), await createNetwork(other)];
    const { reserved_udp_port: port } = await registerServer(owner, own.id, { relay_id });
    expect(port).toBe(50_001);
    const body = { server_public_key: newKey(), server_listen_port: 51820, relay_id };
    const register = () => other.put<ErrorBody>(`/private-networks/${foreign.id}/server`, body);
    const exhausted = await register();
    expect([exhausted.status, exhausted.body.error]).toEqual([503, "unavailable"]);
    expect(exhausted.body.message).toContain("no free UDP port");
    // No agent has ever had a ticket for the port.
    await owner.delete(`/private-networks/${own.id}`);
    expect((await register()).status).toBe(503);
    // Its organization gets the port again, and the cool-down does not end because of that.
    const next = await createNetwork(owner);
    await registerServer(owner, next.id, { relay_id });
    await owner.delete(`/private-networks/${next.id}`);
    expect((await register()).status).toBe(503);
    await api.sql(
      "update relay_ports set released_at = now() - interval '25 hours' where relay_id = $1",
      [relay_id],
    );
    expect((await register()).status).toBe(200);
  });

  test("are given to an organization only while as many stay free for others, also at once", async () => {
    using few = await connectRelay(6);
    const { relayId: relay_id } = few.hello;
    const networks: PrivateNetwork[] = [];
    for (let n = 0; n < 5; n++) networks.push(await createNetwork(owner));
    const register = (id: string, change = {}) =>
      owner.put<ErrorBody>(`/private-networks/${id}/server`, {
        server_public_key: newKey(),
        server_listen_port: 51820,
        relay_id,
        ...change,
      });
    const answers = await Promise.all(networks.map(({ id }) => register(id)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 409, 409]);
    const refused = networks[answers.findIndex(({ status }) => status === 409)]!;
    const served = networks[answers.findIndex(({ status }) => status === 200)]!;
    const ownEndpoint = { public_endpoint: "vpn.example.com:51820" };
    expect(await register(refused.id, ownEndpoint)).toMatchObject({
      status: 200,
      body: { reserved_udp_port: null },
    });
    // A port in its cool-down counts, and can be had again.
    const { body: ticket } = await requestTicket(served.id);
    await owner.delete(`/private-networks/${served.id}`);
    expect(await register(refused.id)).toMatchObject({
      status: 200,
      body: { reserved_udp_port: ticket.port },
    });
    const other = await api.owner();
    const foreign = await createNetwork(other);
    expect((await registerServer(other, foreign.id, { relay_id })).relay_id).toBe(relay_id);
  });

  test("are not given to an organization that is waiting for approval", async () => {
    const person = await api.owner();
    const { id } = await createNetwork(person);
    await api.sql("update organizations set approval_status = 'pending' where id = $1", [
      person.orgId,
    ]);
    const body = { server_public_key: newKey(), server_listen_port: 51820 };
    const refused = await person.put<ErrorBody>(`/private-networks/${id}/server`, body);
    expect([refused.status, refused.body.error]).toEqual([403, "forbidden"]);
    expect(refused.body.message).toContain("waiting for approval");
  });

  test("are logged for the operator when few are free", async () => {
    using few = await connectRelay(12);
    const { relayId: relay_id } = few.hello;
    const warned = () => api.server.output.includes(`"relayId":"${relay_id}","freePorts":1`);
    const { id } = await createNetwork(owner);
    await api.sql(
      `insert into relay_ports (relay_id, protocol, port, owner_id)
        select $1, 'udp', port, gen_random_uuid() from generate_series(50001, 50011) as port`,
      [relay_id],
    );
    await registerServer(owner, id, { relay_id });
    await vi.waitFor(() => expect(warned()).toBe(true), WAIT_OPTIONS);
  });

  test("are of the connected relay with the most free ports, unless a relay is named", async () => {
    using many = await connectRelay(1_000);
    using few = await connectRelay(3);
    const [a, b] = [await createNetwork(owner), await createNetwork(owner)];
    expect((await registerServer(owner, a.id)).relay_id).toBe(many.hello.relayId);
    const named = { relay_id: few.hello.relayId };
    expect((await registerServer(owner, b.id, named)).relay_id).toBe(few.hello.relayId);
    await many.close();
    await vi.waitFor(async () => {
      const c = await createNetwork(owner);
      expect((await registerServer(owner, c.id)).relay_id).toBe("main");
    }, WAIT_OPTIONS);
    // A registered server stays at its relay, and moves only when another one is requested.
    expect((await registerServer(owner, a.id)).relay_id).toBe(many.hello.relayId);
    const moved = await registerServer(owner, a.id, { relay_id: "main" });
    expect(moved.public_endpoint).toMatch(/^relay\.example\.com:40/);
  });

  test("outside of a changed range are replaced by others for the next ticket, or the next device", async () => {
    using before = await connectRelay(4);
    const { relayId } = before.hello;
    const [served, idle] = [await createNetwork(owner), await createNetwork(owner)];
    await registerServer(owner, served.id, { relay_id: relayId });
    await registerServer(owner, idle.id, { relay_id: relayId });
    await before.close();
    using after = await RelayLink.connect(api.server, {
      relayId,
      firstPort: 50_010,
      lastPort: 50_013,
      host: "2001:db8::7",
    });
    expect(after.hello.relayId).toBe(relayId);
    const endpoint = /^\[2001:db8::7\]:5001[0-3]$/;
    await vi.waitFor(async () => {
      const { body } = await requestTicket(served.id);
      expect(`[${body.relay.host}]:${body.port}`).toMatch(endpoint);
    }, WAIT_OPTIONS);
    const { body: network } = await owner.get<PrivateNetwork>(`/private-networks/${served.id}`);
    expect(network.public_endpoint).toMatch(endpoint);
    const { device } = await enroll(owner, idle.id);
    const path = `/private-networks/${idle.id}/devices/${device.id}/config`;
    const { body } = await owner.get<NetworkConfig>(path);
    expect(/^Endpoint = (.+)$/m.exec(body.config)?.[1]).toMatch(endpoint);
    await api.sql("update relays set first_port = 2, last_port = 1 where id = $1", [relayId]);
    expect((await requestTicket(served.id)).body).toMatchObject({
      error: "unavailable",
      message: expect.stringContaining("no free UDP port") as string,
    });
  });

  test("outside of a range that was made smaller are replaced even beyond the organization's share", async () => {
    using before = await connectRelay(6);
    const { relayId } = before.hello;
    const networks = await Promise.all([1, 2, 3].map(() => createNetwork(owner)));
    for (const { id } of networks) await registerServer(owner, id, { relay_id: relayId });
    await api.owner();
    await before.close();
    const range = { firstPort: 50_010, lastPort: 50_012 };
    using _ = await RelayLink.connect(api.server, { relayId, ...range });
    await vi.waitFor(async () => {
      const tickets = await Promise.all(networks.map(({ id }) => requestTicket(id)));
      const ports = tickets.map(({ body }) => body.port).sort();
      expect(ports).toEqual([50_010, 50_011, 50_012]);
    }, WAIT_OPTIONS);
    const another = await createNetwork(owner);
    const body = { server_public_key: newKey(), server_listen_port: 51820, relay_id: relayId };
    const refused = await owner.put(`/private-networks/${another.id}/server`, body);
    expect(refused.status).toBe(503);
  });

  test("are reserved for a server that was registered while no relay was available", async () => {
    const { id } = await createNetwork(owner);
    await registerServer(owner, id);
    await api.sql("update relay_ports set released_at = now() where owner_id = $1", [id]);
    await api.sql(
      "update private_networks set relay_id = null, reserved_udp_port = null where id = $1",
      [id],
    );
    expect((await requestTicket(id)).status).toBe(200);
  });
});
