import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { createCaller, startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import { startResolver, type Resolver } from "../../harness/fakes/resolver.ts";

let resolver: Resolver;
let api: TestApi;
let owner: Person;
let other: Person;
beforeAll(async () => {
  api = await startApi();
  resolver = await startResolver(api.fakePorts.resolver);
  [owner, other] = [await api.owner(), await api.owner()];
});
afterAll(async () => {
  await resolver[Symbol.asyncDispose]();
  await api.stop();
});

let names = 0;
const newName = () => `shop-${(names += 1)}.example`;

const claim = (domain: string, by = owner) => by.post<CustomDomain>("/domains", { domain });
const verify = ({ id }: CustomDomain, by = owner) => by.post<CustomDomain>(`/domains/${id}/verify`);
const bind = ({ id }: CustomDomain, tunnel: { id: string }, by = owner) =>
  by.send<CustomDomain>("PUT", `/domains/${id}/bind`, {
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ tunnel_id: tunnel.id }),
  });
const publish = ({ domain, verificationToken }: CustomDomain) =>
  (resolver.records[`_svc-challenge.${domain}`] ??= []).push(verificationToken);

async function createVerifiedDomain(domain = newName(), by = owner): Promise<CustomDomain> {
  const { body } = await claim(domain, by);
  publish(body);
  return (await verify(body, by)).body;
}

async function createTunnel(by = owner): Promise<Tunnel> {
  return (await by.post<Tunnel>("/tunnels", { localPort: 1 })).body;
}

const findTunnelOfHost = (domain: string) =>
  api
    .sql<{ id: string | null }>("select tunnel_id as id from hostnames where host = $1", [domain])
    .then(([row]) => row?.id ?? null);
const listAuditActions = ({ id }: { id: string }) =>
  api
    .sql<{ action: string }>(
      "select action from audit_events where resource_id = $1 order by created_at, action",
      [id],
    )
    .then((rows) => rows.map(({ action }) => action));

describe("claiming", () => {
  test("returns the record to publish, and nothing else yet", async () => {
    const { status, body } = await claim("Bücher-Laden.Example");
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.any(String),
      domain: "xn--bcher-laden-thb.example",
      proofMissingSince: null,
      verified: false,
      verificationToken: expect.stringMatching(/^[\w-]{43}$/),
      boundTunnelId: null,
    });
    expect((await owner.get<CustomDomain[]>("/domains")).body[0]).toEqual(body);
    expect((await other.get("/domains")).body).toEqual([]);
  });

  test.each(["127.0.0.1", "localhost", "shop.localhost", "api.localhost", "*.a.example", "co.uk"])(
    "is refused for %s",
    async (domain) => {
      expect(await claim(domain)).toMatchObject({ status: 400, body: { error: "invalid_name" } });
    },
  );

  test("is refused for a domain that is not a string, or too long", async () => {
    for (const domain of [1, null, "a".repeat(1_001)]) {
      const reply = await owner.post("/domains", { domain });
      expect(reply).toMatchObject({ status: 400, body: { error: "invalid_request" } });
    }
  });

  test("is refused when the organization has already claimed it, in any spelling", async () => {
    const domain = newName();
    await claim(domain);
    for (const again of [domain, `${domain.toUpperCase()}.`]) {
      expect(await claim(again)).toMatchObject({ status: 409, body: { error: "duplicate_name" } });
    }
  });

  test("succeeds once for twenty concurrent requests", async () => {
    const domain = newName();
    const replies = await Promise.all(Array.from({ length: 20 }, () => claim(domain)));
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(replies.filter(({ status }) => status === 409)).toHaveLength(19);
  });

  test("does not block other organizations", async () => {
    const domain = newName();
    const { body: first } = await claim(domain);
    const { status, body: second } = await claim(domain, other);
    expect(status).toBe(201);
    expect(second.verificationToken).not.toBe(first.verificationToken);
    publish(second);
    expect((await verify(second, other)).status).toBe(200);

    expect((await owner.get<CustomDomain[]>("/domains")).body).not.toContainEqual(first);
    expect(await listAuditActions(first)).toEqual(["domain_claimed", "domain_released"]);
    expect((await claim(domain)).status).toBe(201);
  });

  test("is limited while many domains are not verified", async () => {
    const person = await api.owner();
    await api.sql(
      "insert into domains (org_id, domain, verification_token) select $1, 'wait-' || n || '.example', 't' from generate_series(1, 99) n",
      [person.orgId],
    );
    const replies = await Promise.all(Array.from({ length: 20 }, () => claim(newName(), person)));
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(replies.filter(({ body }) => "error" in body && body.error === "conflict")).toHaveLength(
      19,
    );
  });

  test("expires after a week, and a verified domain never", async () => {
    const [{ body: recent }, { body: old }, verifiedDomain] = [
      await claim(newName()),
      await claim(newName()),
      await createVerifiedDomain(),
    ];
    await api.sql(
      "update domains set created_at = now() - interval '7 days 1 minute' where id = any($1)",
      [[old.id, verifiedDomain.id]],
    );
    await api.runCron();
    const ids = (await owner.get<CustomDomain[]>("/domains")).body.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining([recent.id, verifiedDomain.id]));
    expect(ids).not.toContain(old.id);
    expect(await listAuditActions(old)).toEqual(["domain_claimed", "domain_released"]);
  });
});

describe("verifying", () => {
  test("twenty times at once is one event", async () => {
    const { body } = await claim(newName());
    publish(body);
    const replies = await Promise.all(Array.from({ length: 20 }, () => verify(body)));
    expect(replies.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(await listAuditActions(body)).toEqual(["domain_claimed", "domain_verified"]);
  });

  test("assigns a domain to one of two organizations that verify it at once", async () => {
    for (let round = 0; round < 5; round++) {
      const domain = newName();
      const claims = [(await claim(domain)).body, (await claim(domain, other)).body] as const;
      claims.forEach(publish);
      const replies = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          n % 2 === 0 ? verify(claims[0]) : verify(claims[1], other),
        ),
      );
      const statuses = replies.map(({ status }) => status);
      expect(statuses.filter((status) => status === 200)).toHaveLength(10);
      const rows = await api.sql("select verified_at from domains where domain = $1", [domain]);
      expect(rows).toEqual([{ verified_at: expect.any(Date) }]);
    }
  });

  test("again sends no DNS query", async () => {
    const domain = await createVerifiedDomain();
    const before = resolver.questions.length;
    expect(await verify(domain)).toMatchObject({ status: 200, body: domain });
    expect(resolver.questions).toHaveLength(before);
  });

  test("requires another record after a release", async () => {
    const domain = await createVerifiedDomain();
    await owner.delete(`/domains/${domain.id}`);
    const { body: again } = await claim(domain.domain);
    expect(again.verificationToken).not.toBe(domain.verificationToken);
    expect((await verify(again)).status).toBe(400);
  });
});

describe("binding", () => {
  test("requires a verified domain and an active tunnel of the organization", async () => {
    const [tunnel, ended, foreign] = [
      await createTunnel(),
      await createTunnel(),
      await createTunnel(other),
    ];
    const { body: unverified } = await claim(newName());
    expect(await bind(unverified, tunnel)).toMatchObject({
      status: 400,
      body: { error: "verification_failed" },
    });
    const domain = await createVerifiedDomain();
    await owner.delete(`/tunnels/${ended.id}`);
    for (const wrong of [foreign, ended, { id: crypto.randomUUID() }]) {
      expect((await bind(domain, wrong)).status).toBe(404);
    }
    expect((await bind(domain, await createTunnel(other), other)).status).toBe(404);
    expect((await owner.send("PUT", `/domains/${domain.id}/bind`)).status).toBe(400);
    await api.sql("update tunnels set status = 'expired' where id = $1", [tunnel.id]);
    expect(await bind(domain, tunnel)).toMatchObject({ status: 410, body: { error: "expired" } });
    expect(await findTunnelOfHost(domain.domain)).toBeNull();
  });

  test("is shown in the lists of domains and of tunnels", async () => {
    const tunnel = await createTunnel();
    const domains = [
      await createVerifiedDomain("zz.listed.example"),
      await createVerifiedDomain("aa.listed.example"),
    ];
    for (const domain of domains) {
      const bound = { ...domain, boundTunnelId: tunnel.id };
      expect(await bind(domain, tunnel)).toMatchObject({ status: 200, body: bound });
    }
    const { body } = await owner.get<Tunnel[]>("/tunnels");
    expect(body.find(({ id }) => id === tunnel.id)?.customDomains).toEqual([
      "aa.listed.example",
      "zz.listed.example",
    ]);
    expect(body.filter(({ customDomains }) => customDomains.length > 0)).toHaveLength(1);
  });

  test("moves a domain from one tunnel to another, and repeating it is no event", async () => {
    const [first, second] = [await createTunnel(), await createTunnel()];
    const domain = await createVerifiedDomain();
    await bind(domain, first);
    await bind(domain, second);
    await bind(domain, second);
    expect(await findTunnelOfHost(domain.domain)).toBe(second.id);
    expect(await listAuditActions(domain)).toEqual([
      "domain_claimed",
      "domain_verified",
      "domain_bound",
      "domain_bound",
    ]);
  });

  test("by twenty concurrent requests leaves the tunnel in the row in effect", async () => {
    const tunnels = [await createTunnel(), await createTunnel()];
    const domain = await createVerifiedDomain();
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) => bind(domain, tunnels[n % 2]!)),
    );
    expect(replies.map(({ status }) => status)).toEqual(Array(20).fill(200));
    const [row] = await api.sql<{ id: string }>(
      "select bound_tunnel_id as id from domains where id = $1",
      [domain.id],
    );
    expect(await findTunnelOfHost(domain.domain)).toBe(row?.id);
  });

  test("and a concurrent end of the tunnel never leave a domain that leads to a deleted tunnel", async () => {
    for (let round = 0; round < 5; round++) {
      const tunnel = await createTunnel();
      const domain = await createVerifiedDomain();
      await Promise.all([
        ...Array.from({ length: 10 }, () => bind(domain, tunnel)),
        owner.delete(`/tunnels/${tunnel.id}`),
        ...Array.from({ length: 10 }, () => bind(domain, tunnel)),
      ]);
      const rows = await api.sql("select bound_tunnel_id from domains where id = $1", [domain.id]);
      expect(rows).toEqual([{ bound_tunnel_id: null }]);
      expect(await findTunnelOfHost(domain.domain)).toBeNull();
    }
  });
});

describe("a domain leads to no tunnel", () => {
  async function bindNewDomain(): Promise<{ domain: CustomDomain; tunnel: Tunnel }> {
    const [domain, tunnel] = [await createVerifiedDomain(), await createTunnel()];
    await bind(domain, tunnel);
    return { domain, tunnel };
  }
  const findDomain = async ({ id }: CustomDomain) =>
    (await owner.get<CustomDomain[]>("/domains")).body.find((domain) => domain.id === id);

  test("once it is unbound, and can be bound again", async () => {
    const { domain } = await bindNewDomain();
    for (let times = 0; times < 2; times++) {
      expect((await owner.delete(`/domains/${domain.id}/bind`)).status).toBe(200);
      expect(await findTunnelOfHost(domain.domain)).toBeNull();
    }
    expect(await findDomain(domain)).toEqual(domain);
    expect(await listAuditActions(domain)).toHaveLength(4);
  });

  test("once it is released, and any organization can claim it", async () => {
    const { domain } = await bindNewDomain();
    expect((await owner.delete(`/domains/${domain.id}`)).status).toBe(200);
    expect((await owner.delete(`/domains/${domain.id}`)).status).toBe(404);
    expect(await findTunnelOfHost(domain.domain)).toBeNull();
    expect((await claim(domain.domain, other)).status).toBe(201);
    expect(await listAuditActions(domain)).toContain("domain_released");
  });

  test("once its tunnel is deleted, and it stays verified", async () => {
    const { domain, tunnel } = await bindNewDomain();
    await owner.delete(`/tunnels/${tunnel.id}`);
    expect(await findDomain(domain)).toEqual(domain);
    expect(await findTunnelOfHost(domain.domain)).toBeNull();
    expect(await listAuditActions(domain)).toContain("domain_unbound");
  });

  test("once its tunnel has expired", async () => {
    const { domain, tunnel } = await bindNewDomain();
    await api.sql("update tunnels set expires_at = now() where id = $1", [tunnel.id]);
    await api.runCron();
    expect(await findDomain(domain)).toEqual(domain);
    expect(await findTunnelOfHost(domain.domain)).toBeNull();
  });

  test("once its organization is deleted", async () => {
    const person = await api.owner();
    const domain = await createVerifiedDomain(newName(), person);
    await bind(domain, await createTunnel(person), person);
    await person.delete(`/orgs/${person.orgId}`);
    expect(await findTunnelOfHost(domain.domain)).toBeNull();
    expect((await claim(domain.domain)).status).toBe(201);
  });
});

test("viewers can list domains and not change them", async () => {
  const domain = await createVerifiedDomain();
  const viewer = await api.colleague(owner, "viewer");
  expect((await viewer.get<CustomDomain[]>("/domains")).body).toContainEqual(domain);
  expect((await claim(newName(), viewer)).status).toBe(403);
  expect((await verify(domain, viewer)).status).toBe(403);
});

describe("a TLS proxy may request a certificate for", () => {
  const readStatus = async (domain: string) =>
    (await api.anonymous.get(`/domains/allowed?domain=${encodeURIComponent(domain)}`)).status;

  test("a bound domain, an existing tunnel, and the API", async () => {
    const [domain, tunnel] = [await createVerifiedDomain(), await createTunnel()];
    expect(await readStatus(domain.domain)).toBe(404);
    await bind(domain, tunnel);
    for (const host of [
      domain.domain,
      domain.domain.toUpperCase(),
      `${tunnel.subdomain}.localhost`,
    ]) {
      expect([host, await readStatus(host)]).toEqual([host, 200]);
    }
    await owner.delete(`/tunnels/${tunnel.id}`);
    expect(await readStatus(domain.domain)).toBe(404);
    expect(await readStatus(`${tunnel.subdomain}.localhost`)).toBe(404);
    expect(await readStatus("api.localhost")).toBe(200);
  });

  test.each(["unknown.example", "unknown.localhost", "a.b.localhost", "no host", "a".repeat(250)])(
    "no other host: %s",
    async (host) => expect(await readStatus(host)).toBe(404),
  );

  test("no missing or overlong host, which gets 400", async () => {
    const caller = createCaller(api.server, {});
    for (const query of ["", "?domain=", `?domain=${"a".repeat(300)}`]) {
      expect((await caller.get(`/domains/allowed${query}`)).status).toBe(400);
    }
  });
});
