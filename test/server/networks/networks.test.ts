/** Private networks in the API: who may create, read and delete them. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PrivateNetwork } from "../../../protocol/schemas/networks.ts";
import type { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import { NETWORKS_PER_ORG_MAX } from "../../../workers/limits.ts";
import {
  createCaller,
  mintToken,
  startApi,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import {
  createNetwork,
  enroll,
  newKey,
  registerServer,
} from "../../harness/server/private-networks.ts";
import { RelayLink } from "../../harness/server/relay-link.ts";

let api: TestApi;
let owner: Person;
let relay: RelayLink;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
  relay = await RelayLink.connect(api.server, { lastPort: 40_400 });
});
afterAll(async () => {
  relay[Symbol.dispose]();
  await api.stop();
});

const createAgent = async (person: Person, scope: object = {}) => {
  const token = await mintToken(person, scope);
  const agent = createCaller(api.server, { authorization: `Bearer ${token.wireBytes}` });
  return { token, agent };
};

describe("a private network", () => {
  test("is created, listed, read and deleted, and each change is in the audit log", async () => {
    const person = await api.owner();
    const body = { name: "Office", cidr: "10.88.0.0/24" };
    const created = await person.post<PrivateNetwork>("/private-networks", body);
    expect(created.status).toBe(201);
    const { id } = created.body;
    expect(created.body).toEqual({
      id,
      name: "Office",
      cidr: "10.88.0.0/24",
      server_public_key: null,
      public_endpoint: null,
      server_listen_port: null,
      reserved_udp_port: null,
      relay_id: null,
      relay: {
        state: "offline",
        latency_ms: null,
        loss: null,
        last_seen_at: null,
        server_listening: null,
        wrong_key_handshakes: 0,
      },
      created_at: expect.any(String),
    });
    const path = `/private-networks/${id}`;
    expect((await person.get<PrivateNetwork>(path)).body).toEqual(created.body);
    expect((await person.get<PrivateNetwork[]>("/private-networks")).body).toEqual([created.body]);
    await registerServer(person, id);
    const { device } = await enroll(person, id);
    await person.delete(`${path}/devices/${device.id}`);
    await person.delete(`${path}/server`);
    expect((await person.delete(path)).status).toBe(200);
    expect((await person.delete(path)).status).toBe(404);
    expect((await person.get(path)).status).toBe(404);
    const events = await api.sql<{ action: string; user_id: string }>(
      "select action, user_id from audit_events where org_id = $1 and action like 'network%' order by created_at",
      [person.orgId],
    );
    expect(events.map(({ action }) => action)).toEqual([
      "network_created",
      "network_server_registered",
      "network_device_enrolled",
      "network_device_removed",
      "network_server_removed",
      "network_deleted",
    ]);
    expect(new Set(events.map((event) => event.user_id))).toEqual(new Set([person.userId]));
  });

  test("is listed newest first, page by page", async () => {
    const person = await api.owner();
    const created = [];
    for (let n = 0; n < 3; n++) created.unshift((await createNetwork(person)).id);
    const page = async (query: string) => {
      const { body } = await person.get<PrivateNetwork[]>(`/private-networks?${query}`);
      return body.map(({ id }) => id);
    };
    expect(await page("limit=2")).toEqual(created.slice(0, 2));
    expect(await page(`limit=2&after=${created[1]}`)).toEqual(created.slice(2));
    expect((await person.get("/private-networks?limit=0")).status).toBe(400);
  });

  test.each([
    ["10.88.0.0/16", 201],
    ["172.31.255.252/30", 201],
    ["192.168.7.0/24", 201],
    ["100.127.0.0/17", 201],
    ["10.0.0.0/15", "prefix"],
    ["10.0.0.0/31", "prefix"],
    ["10.0.0.1", "IPv4 block"],
    ["10.0.0.0/a", "IPv4 block"],
    ["10.0.0.0/24/1", "IPv4 block"],
    ["010.0.0.0/24", "IPv4 block"],
    ["", "IPv4 block"],
    ["::ffff:10.0.0.0/120", "IPv6"],
    ["fd00::/64", "IPv6"],
    ["172.32.0.0/16", "inside one of"],
    ["100.128.0.0/16", "inside one of"],
    ["8.8.8.0/24", "inside one of"],
    [`10.88.0.0/24${" ".repeat(60)}`, "at most 64 characters"],
    ["10.88.0.1/24", "10.88.0.0/24"],
    ["192.168.1.77/28", "192.168.1.64/28"],
    [7, "cidr must be a string"],
    [undefined, "cidr is required"],
  ])("has a private IPv4 block: %s", async (cidr, outcome) => {
    const body = { name: `cidr ${crypto.randomUUID()}`, cidr };
    const reply = await owner.post<ErrorBody>("/private-networks", body);
    if (outcome === 201) return expect([reply.status, reply.body]).toMatchObject([201, { cidr }]);
    expect([reply.status, reply.body.error]).toEqual([400, "invalid_cidr"]);
    expect(reply.body.message).toContain(String(outcome));
    expect(reply.body.fields?.map(({ path }) => path)).toEqual(["cidr"]);
  });

  test.each(["", " ", "x".repeat(64), `x${" ".repeat(63)}`, "a\nb", "a\n", "\0", 7, null])(
    "has a name of one line: %j",
    async (name) => {
      const reply = await owner.post<ErrorBody>("/private-networks", { name, cidr: "10.1.0.0/24" });
      expect([reply.status, reply.body.error]).toEqual([400, "invalid_name"]);
    },
  );

  test("has a unique name in its organization, also with concurrent requests", async () => {
    const [person, other] = [await api.owner(), await api.owner()];
    const body = { name: "home", cidr: "10.1.0.0/24" };
    const replies = await Promise.all(
      Array.from({ length: 5 }, () => person.post<ErrorBody>("/private-networks", body)),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409]);
    expect(replies.find(({ status }) => status === 409)!.body.error).toBe("duplicate_name");
    expect((await other.post("/private-networks", body)).status).toBe(201);
  });

  test("is limited in number, also with concurrent requests", async () => {
    const person = await api.owner();
    await api.sql(
      `insert into private_networks (org_id, name, cidr)
       select $1, 'many ' || n, '10.0.0.0/24' from generate_series(1, $2) n`,
      [person.orgId, NETWORKS_PER_ORG_MAX - 2],
    );
    const created = await Promise.all(
      Array.from({ length: 4 }, (_, n) =>
        person.post("/private-networks", { name: `more ${n}`, cidr: "10.1.0.0/24" }),
      ),
    );
    expect(created.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409]);
  });

  test("does not exist for another organization, nor does anything in it", async () => {
    const otherOwner = await api.owner();
    const { id } = await createNetwork(owner);
    await registerServer(owner, id);
    const { device } = await enroll(owner, id);
    const path = `/private-networks/${id}`;
    const foreign = await createNetwork(otherOwner);
    for (const [method, address, body] of [
      ["GET", path],
      ["DELETE", path],
      ["PUT", `${path}/server`, { server_public_key: newKey(), server_listen_port: 1 }],
      ["DELETE", `${path}/server`],
      ["GET", `${path}/server-config`],
      ["POST", `${path}/relay-ticket`],
      ["GET", `${path}/devices`],
      ["POST", `${path}/devices`, { name: "x", public_key: newKey() }],
      ["DELETE", `${path}/devices/${device.id}`],
      ["GET", `${path}/devices/${device.id}/config`],
      // The device of one network in the path of another.
      ["DELETE", `/private-networks/${foreign.id}/devices/${device.id}`],
      ["GET", `/private-networks/${foreign.id}/devices/${device.id}/config`],
    ] as const) {
      const json = { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
      const { status } = await otherOwner.send(method, address, body ? json : {});
      expect([method, address, status]).toEqual([method, address, 404]);
    }
    expect((await otherOwner.get("/private-networks?after=" + id)).status).toBe(400);
  });

  test("can be changed by every member, on every plan, and read by viewers", async () => {
    await api.sql("update organizations set plan = 'free' where id = $1", [owner.orgId]);
    const [member, viewer] = [
      await api.colleague(owner, "member"),
      await api.colleague(owner, "viewer"),
    ];
    const { id } = await createNetwork(member);
    await registerServer(member, id);
    await enroll(member, id);
    expect((await viewer.get(`/private-networks/${id}`)).status).toBe(200);
    expect((await viewer.get(`/private-networks/${id}/devices`)).status).toBe(200);
    expect((await viewer.get(`/private-networks/${id}/server-config`)).status).toBe(200);
    const body = { name: "no", cidr: "10.1.0.0/24" };
    expect((await viewer.post("/private-networks", body)).status).toBe(403);
    expect((await viewer.post(`/private-networks/${id}/relay-ticket`)).status).toBe(403);
    expect((await viewer.delete(`/private-networks/${id}`)).status).toBe(403);
    expect((await member.delete(`/private-networks/${id}`)).status).toBe(200);
  });

  test("is deleted with its organization, and its port is released", async () => {
    const person = await api.owner();
    const { id } = await createNetwork(person);
    await registerServer(person, id);
    expect((await person.delete(`/orgs/${person.orgId}`)).status).toBe(200);
    expect(await api.sql("select id from private_networks where id = $1", [id])).toEqual([]);
    const ports = await api.sql<{ released_at: Date | null }>(
      "select released_at from relay_ports where owner_id = $1",
      [id],
    );
    expect(ports).toEqual([{ released_at: expect.any(Date) }]);
  });
});

describe("an agent's token", () => {
  test("without restrictions may do all of it, in the name of its owner", async () => {
    const person = await api.owner();
    const { agent, token } = await createAgent(person);
    const { id } = await createNetwork(agent, { name: "by an agent" });
    await registerServer(agent, id);
    const { device } = await enroll(agent, id);
    const path = `/private-networks/${id}`;
    expect((await agent.get<PrivateNetwork[]>("/private-networks")).body).toHaveLength(1);
    expect((await agent.get(`${path}/server-config`)).status).toBe(200);
    expect((await agent.get(`${path}/devices/${device.id}/config`)).status).toBe(200);
    expect((await agent.post(`${path}/relay-ticket`)).status).toBe(200);
    expect((await agent.delete(`${path}/devices/${device.id}`)).status).toBe(200);
    expect((await agent.delete(`${path}/server`)).status).toBe(200);
    expect((await agent.delete(path)).status).toBe(200);
    const actors = await api.sql(
      `select distinct user_id, metadata->>'by' as by, metadata->>'tokenNonce' as nonce
        from audit_events where org_id = $1 and action like 'network%'`,
      [person.orgId],
    );
    expect(actors).toEqual([{ user_id: person.userId, by: "agent", nonce: token.nonce }]);
  });

  test("with restrictions, a revoked one, and that of a master key may do none of it", async () => {
    const confined = await createAgent(owner, { allowedSubdomains: ["api"] });
    expect((await confined.agent.get("/private-networks")).status).toBe(403);
    const revoked = await createAgent(owner);
    const { id } = await createNetwork(owner);
    await owner.delete(`/tokens/${revoked.token.nonce}`);
    expect((await revoked.agent.get("/private-networks")).status).toBe(401);
    expect((await revoked.agent.delete(`/private-networks/${id}`)).status).toBe(401);
    const { body: master } = await owner.post<{ wireBytes: string }>("/tokens/master", {
      name: "m",
    });
    const masterCaller = createCaller(api.server, { authorization: `Bearer ${master.wireBytes}` });
    expect((await masterCaller.get("/private-networks")).status).toBe(401);
  });
});
