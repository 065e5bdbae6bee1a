/** Devices of private networks: their addresses, and the WireGuard configurations of device and server. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import type { Device } from "../../../protocol/schemas/networks.ts";
import { startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import {
  createNetwork,
  enroll,
  newKey,
  registerServer,
  type Enrolled,
} from "../../harness/server/private-networks.ts";
import { RelayLink } from "../../harness/server/relay-link.ts";

let api: TestApi;
let owner: Person;
let relay: RelayLink;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
  relay = await RelayLink.connect(api.server);
});
afterAll(async () => {
  relay[Symbol.dispose]();
  await api.stop();
});

const readConfig = async (path: string) => {
  const { status, body } = await owner.get<{ config: string } & ErrorBody>(path);
  return status === 200 ? body.config : `${status} ${body.error}`;
};

describe("a device", () => {
  test("gets the lowest free address after the server's, which is free again after its removal", async () => {
    const { id } = await createNetwork(owner, { cidr: "10.88.0.0/24" });
    const [first, second] = [await enroll(owner, id), await enroll(owner, id, { name: "laptop" })];
    expect(first).toEqual({
      device: {
        id: first.device.id,
        name: "phone",
        assigned_ip: "10.88.0.2",
        public_key: first.device.public_key,
        last_handshake_at: null,
        endpoint: null,
        rx_bytes: null,
        tx_bytes: null,
        created_at: expect.any(String),
      },
      network_cidr: "10.88.0.0/24",
    });
    expect(second.device.assigned_ip).toBe("10.88.0.3");
    const path = `/private-networks/${id}/devices`;
    expect((await owner.get<Device[]>(path)).body).toEqual([second.device, first.device]);
    expect((await owner.delete(`${path}/${first.device.id}`)).status).toBe(200);
    expect((await owner.delete(`${path}/${first.device.id}`)).status).toBe(404);
    expect((await owner.get(`${path}/${first.device.id}/config`)).status).toBe(404);
    expect((await enroll(owner, id)).device.assigned_ip).toBe("10.88.0.2");
  });

  test("is the same when its key is enrolled again, also concurrently", async () => {
    const { id } = await createNetwork(owner);
    const public_key = newKey();
    const enrolled = await Promise.all(
      Array.from({ length: 8 }, (_, n) => enroll(owner, id, { name: `name ${n}`, public_key })),
    );
    expect(new Set(enrolled.map(({ device }) => device.id)).size).toBe(1);
    expect((await owner.get<Device[]>(`/private-networks/${id}/devices`)).body).toHaveLength(1);
    // The same key in another network is another device.
    const other = await createNetwork(owner);
    expect((await enroll(owner, other.id, { public_key })).device.id).not.toBe(
      enrolled[0]!.device.id,
    );
  });

  test("is one of fifty that are enrolled at once, each with its own address", async () => {
    const { id } = await createNetwork(owner, { cidr: "192.168.64.0/26" });
    const enrolled = await Promise.all(Array.from({ length: 50 }, () => enroll(owner, id)));
    const addresses = enrolled.map(({ device }) => device.assigned_ip);
    const expected = Array.from({ length: 50 }, (_, n) => `192.168.64.${n + 2}`);
    expect(new Set(addresses)).toEqual(new Set(expected));
  });

  test("gets no address when all are taken: the broadcast address is never assigned", async () => {
    const { id } = await createNetwork(owner, { cidr: "10.0.0.4/30" });
    const replies = await Promise.all(
      [0, 1, 2].map(() =>
        owner.post<Enrolled & ErrorBody>(`/private-networks/${id}/devices`, {
          name: "phone",
          public_key: newKey(),
        }),
      ),
    );
    const enrolled = replies.filter(({ status }) => status === 201);
    expect(enrolled.map(({ body }) => body.device.assigned_ip)).toEqual(["10.0.0.6"]);
    const refused = replies.filter(({ status }) => status === 409);
    expect(refused.map(({ body }) => body.error)).toEqual(["network_full", "network_full"]);
    await owner.delete(`/private-networks/${id}/devices/${enrolled[0]!.body.device.id}`);
    expect((await enroll(owner, id)).device.assigned_ip).toBe("10.0.0.6");
  });

  test("has an address beyond the first 256 of a large network", async () => {
    const { id } = await createNetwork(owner, { cidr: "10.88.0.0/16" });
    await api.sql(
      `insert into private_network_devices (network_id, name, public_key, host_number)
       select $1, 'many', 'key ' || n, n from generate_series(2, 65533) n`,
      [id],
    );
    expect((await enroll(owner, id)).device.assigned_ip).toBe("10.88.255.254");
    const refused = await owner.post<ErrorBody>(`/private-networks/${id}/devices`, {
      name: "phone",
      public_key: newKey(),
    });
    expect(refused.body.error).toBe("network_full");
  });

  test.each([
    [{ name: "" }, "invalid_name"],
    [{ name: undefined }, "invalid_name"],
    [{ name: "a\nPostUp = reboot" }, "invalid_name"],
    [{ public_key: "short" }, "invalid_request"],
    [{ public_key: "A".repeat(43) + "=" }, "invalid_request"],
    [{ public_key: Buffer.alloc(31, 1).toString("base64") }, "invalid_request"],
    [{ public_key: Buffer.alloc(33, 1).toString("base64") }, "invalid_request"],
    // The last base64 character has bits that belong to no byte.
    [{ public_key: `${"B".repeat(42)}B=` }, "invalid_request"],
    [{ public_key: undefined }, "invalid_request"],
  ])("is not enrolled with %j", async (change, code) => {
    const { id } = await createNetwork(owner);
    const body = { name: "phone", public_key: newKey(), ...change };
    const reply = await owner.post<ErrorBody>(`/private-networks/${id}/devices`, body);
    expect([reply.status, reply.body.error]).toEqual([400, code]);
  });

  test("cannot have the key of the server, nor the server that of a device", async () => {
    const { id } = await createNetwork(owner);
    const { server_public_key: key } = await registerServer(owner, id);
    const path = `/private-networks/${id}`;
    const body = { name: "phone", public_key: key };
    expect((await owner.post(`${path}/devices`, body)).status).toBe(400);
    const { device } = await enroll(owner, id);
    const server = { server_public_key: device.public_key, server_listen_port: 51820 };
    expect((await owner.put(`${path}/server`, server)).status).toBe(400);
  });
});

describe("the configurations", () => {
  test("are as specified, and contain no private key", async () => {
    const { id } = await createNetwork(owner, { name: "Office", cidr: "10.88.4.0/22" });
    const { device } = await enroll(owner, id, { name: "Ann's phone" });
    const path = `/private-networks/${id}`;
    expect(await readConfig(`${path}/server-config`)).toBe("409 server_not_registered");
    expect(await readConfig(`${path}/devices/${device.id}/config`)).toBe(
      "409 server_not_registered",
    );
    const { server_public_key: key, public_endpoint: endpoint } = await registerServer(owner, id);
    expect(await readConfig(`${path}/server-config`)).toBe(
      `# Server of the private network Office
# Relay: clients reach this server at ${endpoint}. Keep "underpass vpn" running on this machine.
[Interface]
PrivateKey = <PASTE_SERVER_PRIVATE_KEY>
Address = 10.88.4.1/22
ListenPort = 51820
MTU = 1380

# Ann's phone
[Peer]
PublicKey = ${device.public_key}
AllowedIPs = 10.88.4.2/32
`,
    );
    expect(await readConfig(`${path}/devices/${device.id}/config`)).toBe(
      `# Ann's phone in the private network Office
[Interface]
PrivateKey = <PASTE_CLIENT_PRIVATE_KEY>
Address = 10.88.4.2/32

[Peer]
PublicKey = ${key}
Endpoint = ${endpoint}
AllowedIPs = 10.88.4.0/22
PersistentKeepalive = 25
`,
    );
  });

  test("contain the server's own endpoint, which needs no relay", async () => {
    const { id } = await createNetwork(owner);
    const { device } = await enroll(owner, id);
    await registerServer(owner, id, { public_endpoint: "vpn.example.com:51820" });
    const path = `/private-networks/${id}`;
    expect(await readConfig(`${path}/devices/${device.id}/config`)).toContain(
      "\nEndpoint = vpn.example.com:51820\n",
    );
    expect(await readConfig(`${path}/server-config`)).toContain("# No relay: ");
  });

  test("contain names only in comments, whatever the names contain", async () => {
    const name = "x\u2028PostUp = reboot\u202e # [Peer]";
    const { id } = await createNetwork(owner);
    const { device } = await enroll(owner, id);
    await registerServer(owner, id);
    // Earlier versions accepted such names.
    await api.sql("update private_networks set name = $2 where id = $1", [id, name]);
    await api.sql("update private_network_devices set name = $2 where id = $1", [device.id, name]);
    const server = await readConfig(`/private-networks/${id}/server-config`);
    const client = await readConfig(`/private-networks/${id}/devices/${device.id}/config`);
    for (const config of [server, client]) {
      const lines = config.split(/[\n\r\u2028\u2029\u0085]/);
      const named = lines.filter((line) => line.includes("PostUp"));
      expect(named.length).toBeGreaterThan(0);
      expect(named.every((line) => line.startsWith("# "))).toBe(true);
      expect(config).not.toContain("\u202e");
    }
  });
});
