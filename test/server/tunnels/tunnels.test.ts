import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import { mintToken, startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import { damageObject } from "../../harness/unreadable-objects.ts";

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
});
afterAll(() => api.stop());

const create = (body: object, by = owner) => by.post<Tunnel>("/tunnels", body);

describe("creating", () => {
  test("reserves a name for an agent that connects later", async () => {
    const { status, body } = await create({ localPort: 3000, subdomain: "reserved" });
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.any(String),
      name: "reserved",
      subdomain: "reserved",
      projectSlug: "default",
      publicUrl: api.server.tunnelUrl("reserved"),
      status: "inactive",
      protocol: "http",
      localPort: 3000,
      publicPort: null,
      allowedCidrs: null,
      agentConnected: false,
      authEnabled: false,
      edgeAuthEnabled: false,
      maintenance: false,
      policyActions: 0,
      shards: 1,
      customDomains: [],
      bytesIn: 0,
      bytesOut: 0,
      totalRequests: 0,
      createdAt: expect.stringMatching(/Z$/),
      expiresAt: null,
      lastSeenAt: null,
      stoppedAt: null,
    });
    const listed = await owner.get<Tunnel[]>("/tunnels");
    expect(listed.body).toContainEqual(body);
  });

  test("adds the project's slug", async () => {
    await api.sql("insert into projects (org_id, slug, name) values ($1, 'staging', 'Staging')", [
      owner.orgId,
    ]);
    const { body } = await create({ localPort: 1, subdomain: "web", projectSlug: "staging" });
    expect(body).toMatchObject({ name: "web", subdomain: "web-staging", projectSlug: "staging" });
    const long = { localPort: 1, subdomain: "x".repeat(56), projectSlug: "staging" };
    expect(await create(long)).toMatchObject({
      status: 400,
      body: { fields: [{ path: "subdomain", message: expect.stringContaining("63") }] },
    });
  });

  test("assigns a name to exactly one of twenty concurrent requests", async () => {
    const people = [owner, await api.owner()];
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        create({ localPort: 1, subdomain: "contested" }, people[n % 2]),
      ),
    );
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(1);
    const refused = replies.filter(({ status }) => status === 409);
    expect(refused).toHaveLength(19);
    expect(refused[0]?.body).toMatchObject({ error: "duplicate_name" });
    expect(await api.sql("select 1 from tunnels where subdomain = 'contested'")).toHaveLength(1);
  });

  test("expires a tunnel as requested", async () => {
    const { body } = await create({ localPort: 1, subdomain: "short", ttlSeconds: 600 });
    expect(Date.parse(body.expiresAt!) - Date.parse(body.createdAt)).toBe(600_000);
  });

  test("expires a tunnel by its plan at the latest", async () => {
    const person = await api.owner();
    await api.sql("update organizations set plan = 'free' where id = $1", [person.orgId]);
    const { body } = await create({ localPort: 1, ttlSeconds: 24 * 3600 }, person);
    expect(Date.parse(body.expiresAt!) - Date.parse(body.createdAt)).toBe(3600_000);
  });

  test.each([1, 31_622_401, Number.MAX_SAFE_INTEGER])(
    "accepts a lifetime of %d seconds, of which the plan grants as much as it includes",
    async (ttlSeconds) => {
      const person = await api.owner();
      await api.sql("update organizations set plan = 'pro' where id = $1", [person.orgId]);
      const { status, body } = await create({ localPort: 1, ttlSeconds }, person);
      const seconds = (Date.parse(body.expiresAt!) - Date.parse(body.createdAt)) / 1000;
      expect([status, seconds]).toEqual([201, Math.min(ttlSeconds, 24 * 3600)]);
    },
  );

  test.each([
    ["no port", {}, "localPort"],
    ["port 0", { localPort: 0 }, "localPort"],
    ["port 65536", { localPort: 65_536 }, "localPort"],
    ["a port as text", { localPort: "3000" }, "localPort"],
    ["upper case", { localPort: 1, subdomain: "Blue" }, "subdomain"],
    ["a leading hyphen", { localPort: 1, subdomain: "-blue" }, "subdomain"],
    ["a dot", { localPort: 1, subdomain: "blue.green" }, "subdomain"],
    ["64 characters", { localPort: 1, subdomain: "b".repeat(64) }, "subdomain"],
    ["an unknown protocol", { localPort: 1, protocol: "ftp" }, "protocol"],
    ["a lifetime of no second", { localPort: 1, ttlSeconds: 0 }, "ttlSeconds"],
    ["a lifetime in parts of a second", { localPort: 1, ttlSeconds: 1.5 }, "ttlSeconds"],
  ])("refuses %s", async (_, body, field) => {
    expect(await create(body)).toMatchObject({
      status: 400,
      body: { error: "invalid_request", fields: [{ path: field }] },
    });
  });

  test("refuses reserved names and unknown projects", async () => {
    expect((await create({ localPort: 1, subdomain: "api" })).status).toBe(409);
    expect((await create({ localPort: 1, projectSlug: "nowhere" })).status).toBe(404);
  });
});

describe("deleting", () => {
  test("frees the name for its organization at once, and for others after a day", async () => {
    const freed = { localPort: 1, subdomain: "freed" };
    const { body } = await create(freed);
    expect(await owner.delete(`/tunnels/${body.id}`)).toMatchObject({
      status: 200,
      body: { ok: true },
    });
    expect((await owner.delete(`/tunnels/${body.id}`)).status).toBe(404);

    const stranger = await api.owner();
    const refusal = await create(freed, stranger);
    expect(refusal).toMatchObject({ status: 409, body: { error: "duplicate_name" } });
    const { message } = refusal.body as unknown as { message: string };
    const [, freeAt] = /belonged to another organization .* reserved until (\S+)\.$/.exec(message)!;
    const hours = (Date.parse(freeAt!) - Date.now()) / 3600_000;
    expect(hours).toBeGreaterThan(23.9);
    expect(hours).toBeLessThanOrEqual(24.1);
    const { wireBytes } = await mintToken(stranger);
    expect(await api.connectAgent(wireBytes, { port: 1, subdomain: "freed" })).toMatchObject({
      code: CLOSE.duplicate_name,
      reason: `duplicate_name: reserved until ${freeAt}: another organization used freed [name_unavailable]`,
    });
    expect(await stranger.post("/reserved-subdomains", { subdomain: "freed" })).toMatchObject({
      status: 409,
      body: { message },
    });

    const { body: again } = await create(freed);
    expect(again.subdomain).toBe("freed");
    expect((await create(freed, stranger)).body).toMatchObject({
      message: "The subdomain freed is taken.",
    });
    await owner.delete(`/tunnels/${again.id}`);
    await api.sql("update hostnames set held_until = now() where host = 'freed'");
    expect((await create(freed, stranger)).status).toBe(201);
  });

  test("does not end the reservation of its name", async () => {
    const reserved = { localPort: 1, subdomain: "freed-reserved" };
    await owner.post("/reserved-subdomains", { subdomain: reserved.subdomain });
    const { body } = await create(reserved);
    await owner.delete(`/tunnels/${body.id}`);
    expect((await create(reserved, await api.owner())).body).toMatchObject({
      message: "The subdomain freed-reserved is taken.",
    });
  });

  test("with its organization keeps the name from others, a project's suffix included", async () => {
    const founder = await api.owner();
    await founder.post("/projects", { slug: "gone", name: "Gone" });
    await create({ localPort: 1, subdomain: "freed", projectSlug: "gone" }, founder);
    expect((await founder.delete(`/orgs/${founder.orgId}`)).status).toBe(200);
    expect(await create({ localPort: 1, subdomain: "freed-gone" })).toMatchObject({
      status: 409,
      body: { error: "duplicate_name", message: expect.stringContaining("It is reserved until") },
    });
  });

  test("happens once, also with concurrent requests", async () => {
    const { body } = await create({ localPort: 1, subdomain: "once" });
    const replies = await Promise.all(
      Array.from({ length: 10 }, () => owner.delete(`/tunnels/${body.id}`)),
    );
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    const events = await api.sql(
      "select 1 from audit_events where action = 'tunnel_deleted' and resource_id = $1",
      [body.id],
    );
    expect(events).toHaveLength(1);
  });

  test("answers 404 for an impossible id", async () => {
    expect((await owner.delete("/tunnels/not-a-uuid")).status).toBe(404);
  });
});

test("a long list is read in pages, without a gap and without a repetition", async () => {
  const person = await api.owner();
  for (const name of ["p1", "p2", "p3", "p4", "p5"]) {
    await create({ localPort: 1, subdomain: `page-${name}` }, person);
  }
  const names: string[] = [];
  for (let after = ""; ;) {
    const { body } = await person.get<Tunnel[]>(`/tunnels?limit=2${after}`);
    if (body.length === 0) break;
    names.push(...body.map(({ name }) => name));
    after = `&after=${body.at(-1)!.id}`;
  }
  expect(names).toEqual(["page-p5", "page-p4", "page-p3", "page-p2", "page-p1"]);
  expect((await person.get("/tunnels?limit=0")).status).toBe(400);
  expect((await person.get("/tunnels?after=x")).status).toBe(400);
});

test("a tunnel whose object does not answer is listed as its row describes it", async () => {
  const person = await api.owner();
  const { body: unreadable } = await create({ localPort: 1 }, person);
  await create({ localPort: 2 }, person);
  await damageObject(api.server, "Tunnel", unreadable.id);
  await api.sql(
    "update tunnels set agent_connected = true, last_seen_at = now() - interval '1 hour' where org_id = $1",
    [person.orgId],
  );
  expect(await person.get("/tunnels")).toMatchObject({
    status: 200,
    body: [
      { localPort: 2, agentConnected: false },
      { localPort: 1, agentConnected: true },
    ],
  });
  expect(await person.get(`/tunnels/${unreadable.id}/agents`)).toMatchObject({
    status: 503,
    body: { error: "unavailable" },
  });
});

test("every change is in the audit log, with its actor and address; no read is", async () => {
  const person = await api.owner();
  const { body } = await create({ localPort: 1 }, person);
  await person.get("/tunnels");
  await person.delete(`/tunnels/${body.id}`);
  const events = await api.sql(
    "select action, user_id, ip from audit_events where resource_id = $1 order by created_at",
    [body.id],
  );
  const by = { user_id: person.userId, ip: "127.0.0.1" };
  expect(events).toEqual([
    { action: "tunnel_created", ...by },
    { action: "tunnel_deleted", ...by },
  ]);
});

test("the audit log cannot be changed", async () => {
  await expect(api.sql("update audit_events set action = 'nothing'")).rejects.toThrow(
    "append-only",
  );
  await expect(api.sql("delete from audit_events")).rejects.toThrow("append-only");
  await expect(api.sql("truncate audit_events")).rejects.toThrow("append-only");
});
