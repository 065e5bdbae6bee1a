import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CaptureIdGenerator } from "../../../protocol/captures/id.ts";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import type { AccountSummary, Me } from "../../../protocol/schemas/accounts/accounts.ts";
import type { Organization } from "../../../protocol/schemas/organizations/organizations.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { createReceiver } from "../../harness/fakes/vendor.ts";
import { createNetwork } from "../../harness/server/private-networks.ts";
import {
  createCaller,
  getSocket,
  mintToken,
  startApi,
  waitForBlockedStatement,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi({ env: { TRIAL_DAYS: "14", DEFAULT_PLAN: "free" } });
  owner = await api.owner();
});
afterAll(() => api.stop());

const create = (by: Person, body: object = { name: "Acme" }) =>
  by.post<Organization>("/orgs", body);
const createBearerCaller = (accessToken: string) =>
  createCaller(api.server, { authorization: `Bearer ${accessToken}` });
const refresh = (cookie: string) =>
  createCaller(api.server, { cookie }).post<{ access_token: string }>("/auth/refresh");
const listActions = async (orgId: string) =>
  (
    await api.sql<{ action: string }>(
      "select action from audit_events where org_id = $1 order by created_at",
      [orgId],
    )
  ).map(({ action }) => action);

describe("creating an organization", () => {
  test("makes the caller its owner, with a default project and one event", async () => {
    const { status, body } = await create(owner, { name: "  Räksmörgås & Söner  " });
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.any(String),
      name: "Räksmörgås & Söner",
      slug: expect.stringMatching(/^r-ksm-rg-s-s-ner-[0-9a-f]{8}$/),
      role: "owner",
      plan: "free",
      approval_status: "approved",
      monthly_budget_usd_cents: null,
      created_at: expect.any(String),
    });
    const projects = await api.sql("select slug, is_default from projects where org_id = $1", [
      body.id,
    ]);
    expect(projects).toEqual([{ slug: "default", is_default: true }]);
    expect(await listActions(body.id)).toEqual(["organization_created"]);
  });

  test("grants no second trial", async () => {
    const { body } = await create(owner);
    const readTrialEnd = async (id: string) =>
      (
        await api.sql<{ trial: Date | null }>(
          "select trial_ends_at trial from organizations where id = $1",
          [id],
        )
      )[0]?.trial;
    expect(await readTrialEnd(owner.orgId)).toBeInstanceOf(Date);
    expect(await readTrialEnd(body.id)).toBeNull();
  });

  test("assigns a slug to exactly one of twenty concurrent requests", async () => {
    const people = await Promise.all([api.owner(), api.owner()]);
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        create(people[at % 2]!, { name: "Contested", slug: "contested" }),
      ),
    );
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(1);
    const refused = replies.filter(({ status }) => status === 409);
    expect(refused).toHaveLength(19);
    expect(refused[0]?.body).toMatchObject({ error: "duplicate_name" });
  });

  test("is limited to twenty per owner, also with concurrent requests", async () => {
    const person = await api.owner();
    const replies = await Promise.all(
      Array.from({ length: 24 }, (_, at) => create(person, { name: `Number ${at}` })),
    );
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(19);
    const refused = replies.find(({ status }) => status === 409);
    expect(refused?.body).toMatchObject({ error: "conflict" });
  });

  test.each([
    ["no name", {}, "name"],
    ["an empty name", { name: " " }, "name"],
    ["a name of two lines", { name: "a\nb" }, "name"],
    ["a name with a link", { name: "Prize: https://evil.example/win" }, "name"],
    ["a name with a bare domain", { name: "Win at evil.example" }, "name"],
    ["a name with a domain in full-width dots", { name: "Win at evil\uff0eexample" }, "name"],
    ["a name with an address", { name: "Write to eve@example" }, "name"],
    ["a name whose order is overridden", { name: "Acme \u202eevil" }, "name"],
    ["a name with an invisible letter", { name: "Ac\u200bme" }, "name"],
    ["a name of 101 characters", { name: "x".repeat(101) }, "name"],
    ["a slug with a capital", { name: "x", slug: "Acme" }, "slug"],
    ["a slug that ends in a hyphen", { name: "x", slug: "acme-" }, "slug"],
    ["a slug of 64 characters", { name: "x", slug: "x".repeat(64) }, "slug"],
  ])("refuses %s", async (_, body, field) => {
    expect(await create(owner, body)).toMatchObject({
      status: 400,
      body: { error: "invalid_request", fields: [{ path: field }] },
    });
  });
});

describe("reading and renaming", () => {
  test("takes effect at the second attempt when PostgreSQL aborts the first one to end a deadlock", async () => {
    const person = await api.owner();
    await api.sql("begin");
    await api.sql("select 1 from memberships where user_id = $1 for update", [person.userId]);
    const renaming = person.patch(`/orgs/${person.orgId}`, { name: "second attempt" });
    // It has locked the organization. It has also waited for longer than the next statement will, so it is aborted.
    await waitForBlockedStatement(api);
    await api.sql("update organizations set plan = plan where id = $1", [person.orgId]);
    await api.sql("commit");
    expect(await renaming).toMatchObject({ status: 200, body: { name: "second attempt" } });
    expect(await listActions(person.orgId)).toContain("organization_updated");
  });

  test("lists the caller's organizations, newest membership first, in pages", async () => {
    const person = await api.owner();
    const created = [];
    for (const name of ["One", "Two", "Three"]) created.push((await create(person, { name })).body);
    const all = (await person.get<Organization[]>("/orgs")).body;
    expect(all.map(({ id }) => id)).toEqual([
      ...created.map(({ id }) => id).reverse(),
      person.orgId,
    ]);
    const first = (await person.get<Organization[]>("/orgs?limit=2")).body;
    const rest = (await person.get<Organization[]>(`/orgs?after=${first[1]!.id}`)).body;
    expect([...first, ...rest]).toEqual(all);
    expect((await person.get(`/orgs?after=${owner.orgId}`)).status).toBe(400);
  });

  test("finds the one of the caller's organizations that has a resource", async () => {
    const [person, other] = [await api.owner(), await api.owner()];
    await create(person);
    const { body: tunnel } = await person.post<Tunnel>("/tunnels", { localPort: 1 });
    const network = await createNetwork(person, { name: "office" });
    const receiver = await createReceiver(person, "code_host", "deployments");
    const capture = new CaptureIdGenerator(tunnel.id, 0).next(Date.now());
    const find = async (by: Person, id: string) =>
      (await by.get<Organization[]>(`/orgs?resource_id=${id}`)).body.map((each) => each.id);
    for (const id of [tunnel.id, capture.toUpperCase(), network.id, receiver.id]) {
      expect(await find(person, id)).toEqual([person.orgId]);
      expect(await find(other, id)).toEqual([]);
    }
    await person.delete(`/tunnels/${tunnel.id}`);
    expect(await find(person, tunnel.id)).toEqual([]);
  });

  test("works whichever organization the token acts for", async () => {
    const { body: created } = await create(owner, { name: "Before" });
    expect((await owner.get<Organization>(`/orgs/${created.id}`)).body).toEqual(created);
    for (const name of ["After", "After"]) {
      const renamed = await owner.patch<Organization>(`/orgs/${created.id}`, { name });
      expect(renamed).toMatchObject({ status: 200, body: { ...created, name: "After" } });
    }
    expect(await listActions(created.id)).toEqual(["organization_created", "organization_updated"]);
  });

  test("answers 404 to other callers and for unknown ids, and 401 without a session", async () => {
    const other = await api.owner();
    for (const id of [owner.orgId, crypto.randomUUID(), "x", "%27%20or%20true--"]) {
      expect([id, (await other.get(`/orgs/${id}`)).status]).toEqual([id, 404]);
      expect([id, (await other.patch(`/orgs/${id}`, { name: "mine" })).status]).toEqual([id, 404]);
      expect([id, (await other.delete(`/orgs/${id}`)).status]).toEqual([id, 404]);
      expect([id, (await api.anonymous.get(`/orgs/${id}`)).status]).toEqual([id, 401]);
    }
    await other.post("/auth/logout");
    expect((await other.get(`/orgs/${owner.orgId}`)).status).toBe(401);
  });

  test("the role in the path's organization counts, not the one in the token's", async () => {
    const guest = await api.owner();
    await api.sql("insert into memberships (user_id, org_id, role) values ($1, $2, 'viewer')", [
      guest.userId,
      owner.orgId,
    ]);
    expect((await guest.get(`/orgs/${owner.orgId}`)).body).toMatchObject({ role: "viewer" });
    expect((await guest.patch(`/orgs/${owner.orgId}`, { name: "mine" })).status).toBe(403);
    expect((await guest.delete(`/orgs/${owner.orgId}`)).status).toBe(403);
  });
});

describe("switching", () => {
  test("returns a token for the other organization, and renewed tokens are for it too", async () => {
    const person = await api.owner();
    const { body: other } = await create(person);
    const { status, body } = await person.post<AccountSummary>(`/orgs/${other.id}/switch`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      user: { id: person.userId, email: person.email },
      active_org: { id: other.id, name: "Acme", slug: other.slug, role: "owner" },
    });
    const activeOrg = async (token: string) =>
      (await createBearerCaller(token).get<Me>("/auth/me")).body.active_org.id;
    expect(await activeOrg(body.access_token)).toBe(other.id);
    expect(await activeOrg(person.accessToken)).toBe(person.orgId);
    const renewed = await refresh(person.cookie);
    expect(await activeOrg(renewed.body.access_token)).toBe(other.id);
    expect(await listActions(other.id)).toEqual(["organization_created", "organization_switched"]);
  });

  test("is remembered at the next sign-in, as long as the user is a member", async () => {
    const person = await api.owner();
    const { body: other } = await create(person);
    const signIn = async () => (await api.logIn(person.email, person.password)).orgId;
    expect(await signIn()).toBe(person.orgId);
    await person.post(`/orgs/${other.id}/switch`);
    expect(await signIn()).toBe(other.id);
    expect((await person.delete(`/orgs/${other.id}`)).status).toBe(200);
    expect(await signIn()).toBe(person.orgId);
  });

  test("to the current organization is no event", async () => {
    const person = await api.owner();
    expect((await person.post(`/orgs/${person.orgId}/switch`)).status).toBe(200);
    expect(await listActions(person.orgId)).not.toContain("organization_switched");
  });

  test("is refused for an organization that the caller is not a member of", async () => {
    const other = await api.owner();
    expect((await other.post(`/orgs/${owner.orgId}/switch`)).status).toBe(404);
  });
});

describe("deleting", () => {
  test("ends everything that acts for it: agents, tokens, names, sessions", async () => {
    const person = await api.owner();
    const member = await api.colleague(person, "member");
    const [token, unused] = [await mintToken(member), await mintToken(person)];
    const agent = await api.connectAgent(token.wireBytes, { port: 1, subdomain: "doomed" });
    const closed = once(getSocket(agent), "close") as Promise<[number]>;
    await person.post<Tunnel>("/tunnels", { localPort: 1, subdomain: "doomed-too" });

    expect((await person.delete(`/orgs/${person.orgId}`)).status).toBe(200);

    expect([CLOSE.unauthorized, CLOSE.tunnel_deleted]).toContain((await closed)[0]);
    for (const by of [person, member]) {
      expect((await by.get("/tunnels")).status).toBe(401);
      expect((await by.get(`/orgs/${person.orgId}`)).status).toBe(404);
    }
    for (const { wireBytes } of [token, unused]) {
      const attempt = await api.connectAgent(wireBytes, { port: 1, subdomain: "doomed" });
      expect(attempt.code).toBe(CLOSE.unauthorized);
    }
    // Visitors may still have its cookies for a while, so its names stay reserved for a day.
    for (const subdomain of ["doomed", "doomed-too"]) {
      expect((await owner.post("/tunnels", { localPort: 1, subdomain })).status).toBe(409);
    }
    const events = (await listActions(person.orgId)).filter((action) =>
      /_(revoked|deleted)$/.test(action),
    );
    expect(events.sort()).toEqual([
      "organization_deleted",
      "token_revoked",
      "token_revoked",
      "tunnel_deleted",
      "tunnel_deleted",
    ]);
  });

  test("frees the slug", async () => {
    const { body } = await create(owner, { name: "Short", slug: "short-lived" });
    await owner.delete(`/orgs/${body.id}`);
    expect((await owner.delete(`/orgs/${body.id}`)).status).toBe(404);
    expect((await create(owner, { name: "Short", slug: "short-lived" })).status).toBe(201);
  });

  test("renews a session for another organization", async () => {
    const person = await api.owner();
    const { body: other } = await create(person);
    await person.delete(`/orgs/${person.orgId}`);
    const { body } = await refresh(person.cookie);
    const me = await createBearerCaller(body.access_token).get<Me>("/auth/me");
    expect(me.body.active_org.id).toBe(other.id);
  });

  test("creates a new organization at sign-in for a user without one, with the rest of the first trial", async () => {
    const person = await api.owner();
    await api.sql("update users set created_at = now() - interval '10 days' where id = $1", [
      person.userId,
    ]);
    await person.delete(`/orgs/${person.orgId}`);
    const again = await api.logIn(person.email, person.password);
    expect(again.orgId).not.toBe(person.orgId);
    expect((await again.get("/tunnels")).status).toBe(200);
    const [org] = await api.sql<{ days: number }>(
      "select extract(epoch from trial_ends_at - now())::float8 / 86400 days from organizations where id = $1",
      [again.orgId],
    );
    expect(org?.days).toBeCloseTo(4, 1);
    expect(await listActions(again.orgId)).toEqual(["organization_created", "session_created"]);
  });

  test("works for an organization with thousands of tokens and many tunnels", async () => {
    const person = await api.owner();
    const insertTokens = (count: number, expiresAt: string) =>
      api.sql(
        `insert into tokens (org_id, nonce, kind, name, bandwidth_limit_mbps, tunnel_quota, issued_at, expires_at)
         select $1, replace(gen_random_uuid()::text, '-', ''), 'agent', 'one of many', 1, 1, now(), $3::timestamptz
         from generate_series(1, $2::int) n`,
        [person.orgId, count, expiresAt],
      );
    await insertTokens(10_000, "now");
    // Those of jobs that have ended: more than a statement can have parameters.
    await insertTokens(66_000, "yesterday");
    await api.sql(
      `insert into tunnels (org_id, project_id, name, subdomain, protocol, local_port)
       select org_id, id, 'many-' || n, 'many-' || n, 'http', 1 from projects, generate_series(1, 150) n
       where org_id = $1`,
      [person.orgId],
    );
    await api.sql("insert into hostnames select subdomain, id from tunnels where org_id = $1", [
      person.orgId,
    ]);
    expect((await person.delete(`/orgs/${person.orgId}`)).status).toBe(200);
    const events = await listActions(person.orgId);
    expect(events.filter((action) => action === "token_revoked")).toHaveLength(10_000);
    expect(events.filter((action) => action === "tunnel_deleted")).toHaveLength(150);
    const [taken] = await api.sql(
      "select host from hostnames where host like 'many-%' and tunnel_id is not null",
    );
    expect(taken).toBeUndefined();
    await waitUntil(async () => (await api.sql("select 1 from outbox")).length === 0);
  });

  test("leaves no tunnel and no token that is created at the same time", async () => {
    const person = await api.owner();
    const requests = Array.from({ length: 24 }, (_, at) =>
      at % 2 === 0
        ? person.post("/tunnels", { localPort: 1 })
        : person.post("/tokens", { name: "late" }),
    );
    const [deleted] = await Promise.all([person.delete(`/orgs/${person.orgId}`), ...requests]);
    expect(deleted.status).toBe(200);
    const remaining = await api.sql(
      `select id from tokens where org_id = $1 and revoked_at is null
       union all select id from tunnels where org_id = $1 and deleted_at is null
       union all select user_id from memberships where org_id = $1`,
      [person.orgId],
    );
    expect(remaining).toEqual([]);
  });
});
