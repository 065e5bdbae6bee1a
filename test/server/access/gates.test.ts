import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { startApi, type Caller, type Person, type TestApi } from "../../harness/server/api.ts";

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
});
afterAll(() => api.stop());

const put = (path: string, body: unknown, by: Caller = owner) =>
  by.send<{ error: string; message: string; fields: { path: string }[] }>("PUT", path, {
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

async function createTunnel(by: Person = owner): Promise<string> {
  return (await by.post<Tunnel>("/tunnels", { localPort: 1 })).body.id;
}

async function findTunnel(id: string, by: Person = owner): Promise<Tunnel> {
  const { body } = await by.get<Tunnel[]>("/tunnels");
  return body.find((tunnel) => tunnel.id === id)!;
}

const listAuditActions = async (id: string) =>
  (
    await api.sql<{ action: string }>(
      "select action from audit_events where resource_id = $1 order by created_at",
      [id],
    )
  ).map(({ action }) => action);

/** What the events of a tunnel's gates say, without its creation. */
const listAuditMetadata = async (id: string) =>
  (
    await api.sql<{ metadata: object }>(
      "select metadata from audit_events where resource_id = $1 order by created_at offset 1",
      [id],
    )
  ).map(({ metadata }) => metadata);

const DENY = { kind: "deny", path_prefix: "/admin" };
const SET = { kind: "header_set", name: "X-Team", value: "blue" };
const LIMIT = { kind: "rate_limit", requests_per_minute: 60, per_client_ip: true };
const JWT = {
  kind: "jwt_validation",
  allowed_issuers: ["https://issuer.example"],
  allowed_audiences: ["shop"],
};

describe("a traffic policy", () => {
  test("is stored as sent, replaced as a whole, and removed", async () => {
    const id = await createTunnel();
    const path = `/tunnels/${id}/policy`;
    expect((await owner.get(path)).body).toEqual({ id, policy: null });

    const policy = { actions: [DENY, SET, LIMIT, JWT] };
    expect(await put(path, policy)).toMatchObject({ status: 200, body: { id, policy } });
    expect((await owner.get(path)).body).toEqual({ id, policy });
    expect(await findTunnel(id)).toMatchObject({ policyActions: 4 });

    await put(path, { actions: [DENY] });
    expect((await owner.get(path)).body).toEqual({ id, policy: { actions: [DENY] } });
    expect(await owner.delete(path)).toMatchObject({ status: 200, body: { id, policy: null } });
    expect(await findTunnel(id)).toMatchObject({ policyActions: 0 });
    expect(await listAuditActions(id)).toEqual([
      "tunnel_created",
      "tunnel_policy_set",
      "tunnel_policy_set",
      "tunnel_policy_removed",
    ]);
    expect(await listAuditMetadata(id)).toEqual([{ actions: 4 }, { actions: 1 }, {}]);
  });

  test.each([
    ["no actions", {}, "actions"],
    ["an unknown kind", { actions: [DENY, { kind: "allow" }] }, "actions[1].kind"],
    ["seventeen actions", { actions: Array(17).fill(DENY) }, "actions"],
    ["two rate limits", { actions: [LIMIT, DENY, LIMIT] }, "actions[2].kind"],
    ["two token checks", { actions: [JWT, JWT] }, "actions[1].kind"],
    [
      "a prefix that is not a path",
      { actions: [{ ...DENY, path_prefix: "admin" }] },
      "actions[0].path_prefix",
    ],
    [
      "a prefix with a query",
      { actions: [{ ...DENY, path_prefix: "/a?b" }] },
      "actions[0].path_prefix",
    ],
    [
      "a prefix with dot segments",
      { actions: [{ ...DENY, path_prefix: "/x/../secret" }] },
      "actions[0].path_prefix",
    ],
    ["no prefix", { actions: [SET, { kind: "deny" }] }, "actions[1].path_prefix"],
    [
      "a limit of zero",
      { actions: [{ ...LIMIT, requests_per_minute: 0 }] },
      "actions[0].requests_per_minute",
    ],
    [
      "a limit that is a fraction",
      { actions: [{ ...LIMIT, requests_per_minute: 1.5 }] },
      "actions[0].requests_per_minute",
    ],
    [
      "a flag that is not a boolean",
      { actions: [{ ...LIMIT, per_client_ip: "yes" }] },
      "actions[0].per_client_ip",
    ],
    [
      "a line break in a value",
      { actions: [{ ...SET, value: "a\r\nHost: b" }] },
      "actions[0].value",
    ],
    ["a NUL in a value", { actions: [{ ...SET, value: "a\0" }] }, "actions[0].value"],
    ["an invalid header name", { actions: [{ ...SET, name: "X Team" }] }, "actions[0].name"],
    [
      "an issuer without TLS",
      { actions: [{ ...JWT, allowed_issuers: ["http://i.example"] }] },
      "actions[0].allowed_issuers[0]",
    ],
    [
      "an issuer that is not a URL",
      { actions: [{ ...JWT, allowed_issuers: ["issuer"] }] },
      "actions[0].allowed_issuers[0]",
    ],
    [
      "an empty list of issuers",
      { actions: [{ ...JWT, allowed_issuers: [] }] },
      "actions[0].allowed_issuers",
    ],
  ])("is refused with %s, and the response names the field", async (_, policy, field) => {
    const id = await createTunnel();
    const { status, body } = await put(`/tunnels/${id}/policy`, policy);
    expect([status, body.error, body.fields[0]?.path]).toEqual([400, "bad_policy", field]);
    expect(body.message).toContain(field);
    expect((await owner.get(`/tunnels/${id}/policy`)).body).toEqual({ id, policy: null });
  });

  test.each(["null", "[]", '"deny"', "1", "true", '[{"kind":"deny"}]'])(
    "is refused with %s in place of an object",
    async (text) => {
      const path = `/tunnels/${await createTunnel()}/policy`;
      const headers = { "content-type": "application/json" };
      expect(await owner.send("PUT", path, { headers, body: text })).toMatchObject({
        status: 400,
        body: {
          error: "bad_policy",
          message: "The request body must be an object.",
          fields: [{ path: "", message: "must be an object" }],
        },
      });
    },
  );

  test.each([
    ...["Host", "Connection", "Content-Length", "Transfer-Encoding", "Upgrade", "TE", "Trailer"],
    ...["Keep-Alive", "Proxy-Authorization", "Expect", "X-Forwarded-For", "x_forwarded_for"],
    ...[
      "Forwarded",
      "CF-Connecting-IP",
      "Sec-WebSocket-Key",
      "Underpass-Judged",
      "underpass_error",
    ],
  ])("can't set %s", async (name) => {
    const { body } = await put(`/tunnels/${await createTunnel()}/policy`, {
      actions: [{ ...SET, name }],
    });
    expect([body.error, body.fields[0]?.path]).toEqual(["bad_policy", "actions[0].name"]);
  });
});

describe("a password", () => {
  test.each(["username", "user"])("is set by %s, and removed", async (field) => {
    const id = await createTunnel();
    const path = `/tunnels/${id}/auth`;
    const set = await put(path, { [field]: "ann", password: "open sesame" });
    expect(set).toMatchObject({ status: 200, body: { id, auth_enabled: true } });
    expect(await findTunnel(id)).toMatchObject({ authEnabled: true });
    expect((await owner.get(path)).body).toEqual({ id, auth_enabled: true, username: "ann" });
    const [row] = await api.sql<{ basic_auth_username: string; basic_auth_hash: string }>(
      "select basic_auth_username, basic_auth_hash from tunnels where id = $1",
      [id],
    );
    expect(row?.basic_auth_username).toBe("ann");
    expect(row?.basic_auth_hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);

    const removed = await owner.delete(path);
    expect(removed).toMatchObject({ status: 200, body: { id, auth_enabled: false } });
    expect(await findTunnel(id)).toMatchObject({ authEnabled: false });
    expect((await owner.get(path)).body).toEqual({ id, auth_enabled: false, username: null });
    expect(await listAuditActions(id)).toEqual([
      "tunnel_created",
      "tunnel_password_set",
      "tunnel_password_removed",
    ]);
    expect(await listAuditMetadata(id)).toEqual([{ username: "ann" }, {}]);
  });

  test.each([
    ["no name", { password: "open sesame" }, "username"],
    ["an empty name", { username: "", password: "open sesame" }, "username"],
    ["a name of 65 characters", { username: "a".repeat(65), password: "open sesame" }, "username"],
    ["a colon in the name", { user: "a:b", password: "open sesame" }, "user"],
    ["no password", { username: "ann" }, "password"],
    ["a password of seven characters", { username: "ann", password: "1234567" }, "password"],
    ["a NUL in the password", { username: "ann", password: "open\0sesame" }, "password"],
    [
      "a password of more than 1,024 bytes",
      { username: "ann", password: "é".repeat(513) },
      "password",
    ],
  ])("is refused with %s", async (_, body, field) => {
    const refused = await put(`/tunnels/${await createTunnel()}/auth`, body);
    expect(refused).toMatchObject({
      status: 400,
      body: { error: "invalid_request", fields: [{ path: field }] },
    });
  });

  test("requires a plan that includes it, or a trial", async () => {
    const person = await api.owner();
    const id = await createTunnel(person);
    const set = () =>
      put(`/tunnels/${id}/auth`, { username: "ann", password: "open sesame" }, person);
    const updateOrganization = (values: string) =>
      api.sql(`update organizations set ${values} where id = $1`, [person.orgId]);
    await updateOrganization("plan = 'free', trial_ends_at = null");
    expect(await set()).toMatchObject({ status: 402, body: { error: "upgrade_required" } });
    await updateOrganization("trial_ends_at = now() - interval '1 second'");
    expect((await set()).status).toBe(402);
    await updateOrganization("trial_ends_at = now() + interval '1 hour'");
    expect((await set()).status).toBe(200);
    await updateOrganization("plan = 'pro', trial_ends_at = null");
    expect((await set()).status).toBe(200);
    // A plan without passwords still allows removing one.
    await updateOrganization("plan = 'free'");
    expect((await person.delete(`/tunnels/${id}/auth`)).status).toBe(200);
  });
});

describe("maintenance", () => {
  test("is started with a message or without, and ended", async () => {
    const id = await createTunnel();
    const path = `/tunnels/${id}/maintenance`;
    expect(await owner.send("PUT", path)).toMatchObject({
      status: 200,
      body: { id, maintenance: true, message: null },
    });
    expect(await put(path, { message: "back at <noon>" })).toMatchObject({
      status: 200,
      body: { id, maintenance: true, message: "back at <noon>" },
    });
    expect((await owner.get(path)).body).toEqual({
      id,
      maintenance: true,
      message: "back at <noon>",
    });
    expect(await findTunnel(id)).toMatchObject({ maintenance: true, status: "inactive" });
    expect(await owner.delete(path)).toMatchObject({
      status: 200,
      body: { id, maintenance: false, message: null },
    });
    expect((await owner.get(path)).body).toEqual({ id, maintenance: false, message: null });
    expect(await findTunnel(id)).toMatchObject({ maintenance: false, status: "inactive" });
    expect(await listAuditActions(id)).toEqual([
      "tunnel_created",
      "tunnel_maintenance_started",
      "tunnel_maintenance_started",
      "tunnel_maintenance_ended",
    ]);
  });

  test("has a message of at most 500 characters", async () => {
    const path = `/tunnels/${await createTunnel()}/maintenance`;
    expect((await put(path, { message: "a".repeat(500) })).status).toBe(200);
    expect(await put(path, { message: "a".repeat(501) })).toMatchObject({
      status: 400,
      body: { error: "invalid_request", fields: [{ path: "message" }] },
    });
  });
});

describe("the gates of a tunnel", () => {
  const CHANGES: [string, string, object][] = [
    ["PUT", "policy", { actions: [] }],
    ["DELETE", "policy", {}],
    ["PUT", "auth", { username: "ann", password: "open sesame" }],
    ["DELETE", "auth", {}],
    ["PUT", "maintenance", {}],
    ["DELETE", "maintenance", {}],
  ];
  const send = (by: Caller, id: string, [method, setting, body]: (typeof CHANGES)[number]) =>
    by.send(method, `/tunnels/${id}/${setting}`, {
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });

  test.each(CHANGES)(
    "cannot be changed by another organization or a viewer: %s %s",
    async (...change) => {
      const id = await createTunnel();
      expect((await send(await api.colleague(owner, "viewer"), id, change)).status).toBe(403);
      const otherOwner = await api.owner();
      expect((await send(otherOwner, id, change)).status).toBe(404);
      expect((await otherOwner.get(`/tunnels/${id}/${change[1]}`)).status).toBe(404);
      await owner.delete(`/tunnels/${id}`);
      expect((await send(owner, id, change)).status).toBe(404);
    },
  );

  test("cannot be changed after the tunnel has expired, and can still be read", async () => {
    const id = await createTunnel();
    const cidrs = ["192.0.2.0/24"];
    await put(`/tunnels/${id}/ip-allowlist`, { cidrs });
    await api.sql("update tunnels set status = 'expired' where id = $1", [id]);
    const lists = { allowed_domains: [], allowed_emails: [] };
    for (const change of [
      ...CHANGES,
      ["PUT", "ip-allowlist", { cidrs: ["198.51.100.0/24"] }],
      ["DELETE", "ip-allowlist", {}],
      ["PUT", "edge-auth", lists],
      ["DELETE", "edge-auth", {}],
      ["PUT", "inspector", {}],
      ["PUT", "shards", { shards: 2 }],
    ] as typeof CHANGES) {
      const reply = await send(owner, id, change);
      expect([...change, reply]).toMatchObject([
        ...change,
        { status: 410, body: { error: "expired" } },
      ]);
    }
    expect((await owner.get(`/tunnels/${id}/ip-allowlist`)).body).toEqual({ id, cidrs });
    expect(await listAuditActions(id)).toEqual(["tunnel_created", "tunnel_ip_allowlist_set"]);
    expect(await listAuditMetadata(id)).toEqual([{ cidrs }]);
  });

  test("leave an event when they are removed, unless the tunnel does not have them", async () => {
    const id = await createTunnel();
    for (const setting of ["policy", "auth", "edge-auth", "maintenance", "ip-allowlist"]) {
      const reply = await owner.delete(`/tunnels/${id}/${setting}`);
      expect([setting, reply.status]).toEqual([setting, 200]);
    }
    expect(await listAuditActions(id)).toEqual(["tunnel_created"]);

    await put(`/tunnels/${id}/policy`, { actions: [DENY] });
    const removals = Array.from({ length: 5 }, () => owner.delete(`/tunnels/${id}/policy`));
    expect((await Promise.all(removals)).map(({ status }) => status)).toEqual(Array(5).fill(200));
    expect(await listAuditActions(id)).toEqual([
      "tunnel_created",
      "tunnel_policy_set",
      "tunnel_policy_removed",
    ]);
  });

  test("are those of the last of twenty concurrent changes, in the row and in the object", async () => {
    const id = await createTunnel();
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        put(`/tunnels/${id}/policy`, { actions: [{ ...LIMIT, requests_per_minute: n + 1 }] }),
      ),
    );
    expect(replies.map(({ status }) => status)).toEqual(Array(20).fill(200));
    const [row] = await api.sql<{ settings_version: number }>(
      "select settings_version from tunnels where id = $1",
      [id],
    );
    expect(row).toEqual({ settings_version: 20 });
    expect(await api.sql("select 1 from outbox where kind = 'tunnel_settings'")).toEqual([]);
    expect(await listAuditActions(id)).toHaveLength(21);
  });

  test("are reported as in force only after the tunnel was updated", async () => {
    const id = await createTunnel();
    // No tunnel's object accepts this policy.
    await api.sql(`update tunnels set policy = '{"actions":[{"kind":"none"}]}' where id = $1`, [
      id,
    ]);
    const reply = await put(`/tunnels/${id}/auth`, { username: "ann", password: "open sesame" });
    expect(reply).toMatchObject({ status: 503, body: { error: "unavailable" } });
    expect(Number(reply.headers.get("retry-after"))).toBeGreaterThan(0);
    const waiting = () => api.sql("select 1 from outbox where kind = 'tunnel_settings'");
    expect(await waiting()).toHaveLength(1);
    expect(await listAuditActions(id)).toContain("tunnel_password_set");

    expect((await put(`/tunnels/${id}/policy`, { actions: [] })).status).toBe(200);
    await api.sql("update outbox set next_attempt_at = now() - interval '1 hour'");
    await api.runCron();
    expect(await waiting()).toEqual([]);
  });
});
