import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AuditEvent, PersonalEvent } from "../../../protocol/schemas/organizations/audit.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  createCaller,
  mintToken,
  PASSWORD,
  startApi,
  type Caller,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
});
afterAll(() => api.stop());

const eventsOf = async (person: Caller, query: Record<string, string> = {}) =>
  (await person.get<AuditEvent[]>(`/events?${new URLSearchParams(query).toString()}`)).body;
const actionsOf = (events: { action: string }[]) => events.map(({ action }) => action);
const reserve = async (person: Person) =>
  (await person.post<Tunnel>("/tunnels", { localPort: 1 })).body;

describe("the organization's log", () => {
  test("has each event with its actor, action, resource and time, newest first", async () => {
    const tunnel = await reserve(owner);
    const [newest, ...older] = await eventsOf(owner);
    expect(newest).toEqual({
      id: expect.any(String),
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      action: "tunnel_created",
      resourceType: "tunnel",
      resourceId: tunnel.id,
      userEmail: owner.email,
      ipAddress: "127.0.0.1",
      metadata: expect.any(Object),
    });
    expect(actionsOf(older)).toEqual(["session_created", "email_verified"]);
    const times = [newest!, ...older].map(({ timestamp }) => timestamp);
    expect(times).toEqual(times.toSorted().reverse());
  });

  test("is of that organization only, for every role in it", async () => {
    const viewer = await api.colleague(owner, "viewer");
    await reserve(await api.owner());
    expect(await eventsOf(viewer)).toEqual(await eventsOf(owner));
    const rows = await api.sql<{ id: string }>("select id from audit_events where org_id = $1", [
      owner.orgId,
    ]);
    const ids = (await eventsOf(owner)).map(({ id }) => id);
    expect(ids.toSorted()).toEqual(rows.map(({ id }) => id).sort());
  });

  test("is filtered by action, time and actor, also combined", async () => {
    const boss = await api.owner();
    const member = await api.colleague(boss, "member");
    await reserve(boss);
    const start = new Date().toISOString();
    await reserve(member);
    await mintToken(member);

    expect(actionsOf(await eventsOf(boss, { action: "tunnel_created" }))).toHaveLength(2);
    for (const actor of [member.userId, member.email, ` ${member.email.toUpperCase()} `]) {
      const found = await eventsOf(boss, { actor, start_time: start });
      expect(actionsOf(found)).toEqual(["token_created", "tunnel_created"]);
    }
    expect(actionsOf(await eventsOf(boss, { start_time: start }))).toHaveLength(2);
    const later = start.replace("Z", "+00:00");
    const query = { actor: member.email, start_time: later, action: "token_created", limit: "5" };
    expect(actionsOf(await eventsOf(boss, query))).toEqual(["token_created"]);
    expect(await eventsOf(boss, { actor: owner.email })).toEqual([]);
    expect(await eventsOf(boss, { action: "no_such_action" })).toEqual([]);
    expect(await eventsOf(boss, { start_time: "9999-12-31T23:59:59Z" })).toEqual([]);
    expect((await eventsOf(boss, { start_time: "0000-01-01T00:00:00Z" })).length).toBe(
      (await eventsOf(boss)).length,
    );
  });

  test.each([
    { start_time: "yesterday" },
    { start_time: "2026-02-30T00:00:00Z" },
    { start_time: "2026-01-01" },
    { start_time: "1767225600" },
    { limit: "0" },
    { limit: "1001" },
    { limit: "many" },
    { after: "the beginning" },
    { action: "tunnel\0created" },
    { action: "tunnel_created' or true --" },
    { actor: "some\0body" },
    { actor: "a".repeat(300) },
  ])("refuses %j", async (query) => {
    const { status, body } = await owner.get(
      `/events?${new URLSearchParams(query as never).toString()}`,
    );
    expect([status, body]).toEqual([400, expect.objectContaining({ error: "invalid_request" })]);
  });

  test("is read page by page, without a gap or a repetition", async () => {
    const boss = await api.owner();
    // One transaction, one moment: the order among them must hold all the same.
    await api.sql(
      "insert into audit_events (org_id, action, resource_type, resource_id) select $1, 'tunnel_expired', 'tunnel', n::text from generate_series(1, 25) n",
      [boss.orgId],
    );
    const all = await eventsOf(boss);
    const paged: AuditEvent[] = [];
    for (;;) {
      const last = paged.at(-1);
      const page = await eventsOf(boss, { limit: "10", ...(last && { after: last.id }) });
      paged.push(...page);
      if (page.length < 10) break;
    }
    expect(paged).toEqual(all);
    const [foreign] = await eventsOf(owner);
    expect(await eventsOf(boss, { after: foreign!.id })).toEqual([]);
  });

  test("retains its events when the account is deleted, without the actor", async () => {
    const boss = await api.owner();
    const member = await api.colleague(boss, "member");
    await reserve(member);
    await api.sql("delete from users where id = $1", [member.userId]);
    const [event] = await eventsOf(boss);
    expect(event).toMatchObject({ action: "tunnel_created", userEmail: null });
  });
});

describe("the log of an account", () => {
  test("has the security events of the account, of every organization", async () => {
    const person = await api.signUp();
    await reserve(person);
    await mintToken(person);
    await api.anonymous.post("/auth/signup", { email: person.email, password: PASSWORD });
    const { body } = await person.get<PersonalEvent[]>("/me/events");
    expect(actionsOf(body)).toEqual([
      "sign_up_repeated",
      "token_created",
      "session_created",
      "email_verified",
      "account_created",
    ]);
    expect(body.map(({ organizationId }) => organizationId)).toEqual([
      null,
      person.orgId,
      person.orgId,
      person.orgId,
      null,
    ]);
    expect(new Set(body.map(({ userEmail }) => userEmail))).toEqual(new Set([person.email]));
  });

  test("has no events of other accounts, and is read page by page", async () => {
    const person = await api.signUp();
    const colleague = await api.colleague(person, "admin");
    await mintToken(colleague);
    const { body: all } = await person.get<PersonalEvent[]>("/me/events");
    expect(actionsOf(all)).toEqual(["session_created", "email_verified", "account_created"]);
    const { body: rest } = await person.get(`/me/events?limit=2&after=${all[0]!.id}`);
    expect(rest).toEqual(all.slice(1));
    const [foreign] = (await colleague.get<PersonalEvent[]>("/me/events")).body;
    expect((await person.get(`/me/events?after=${foreign!.id}`)).body).toEqual([]);
  });
});

describe("a recorded event", () => {
  test.each([
    "update audit_events set action = 'nothing'",
    "delete from audit_events",
    "truncate audit_events",
    "truncate audit_events, users cascade",
  ])("is permanent: the database refuses to %s", async (statement) => {
    const before = await api.sql("select count(*) from audit_events");
    await expect(api.sql(statement)).rejects.toThrow("audit_events is append-only");
    expect(await api.sql("select count(*) from audit_events")).toEqual(before);
  });

  test("is committed with its change: neither happens without the other", async () => {
    const person = await api.owner();
    const before = await eventsOf(person);
    const tunnel = await reserve(owner);
    const taken = { localPort: 1, subdomain: tunnel.subdomain };
    expect((await person.post("/tunnels", taken)).status).toBe(409);
    expect((await person.delete(`/tunnels/${crypto.randomUUID()}`)).status).toBe(404);
    expect(await eventsOf(person)).toEqual(before);

    await api.sql(
      "alter table audit_events add constraint broken check (action <> 'token_created') not valid",
    );
    try {
      expect((await person.post("/tokens", { name: "unrecorded" })).status).toBe(500);
    } finally {
      await api.sql("alter table audit_events drop constraint broken");
    }
    expect((await person.get<unknown[]>("/tokens")).body).toEqual([]);
    expect(await eventsOf(person)).toEqual(before);
  });

  test("is one for each change, also with concurrent changes", async () => {
    const person = await api.owner();
    const tunnels = await Promise.all(Array.from({ length: 20 }, () => reserve(person)));
    const created = await eventsOf(person, { action: "tunnel_created" });
    expect(created.map(({ resourceId }) => resourceId).sort()).toEqual(
      tunnels.map(({ id }) => id).sort(),
    );
  });
});

test("no log can be read without a session", async () => {
  for (const path of ["/events", "/me/events"]) {
    for (const caller of [api.anonymous, createCaller(api.server, { cookie: owner.cookie })]) {
      expect((await caller.get(path)).status).toBe(401);
    }
  }
});
