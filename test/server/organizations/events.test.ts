import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AuditEvent, PersonalEvent } from "../../../protocol/schemas/organizations/audit.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { AUDIT_SEARCH_MAX_EVENTS } from "../../../workers/limits.ts";
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

const readEvents = async (person: Caller, query: Record<string, string> = {}) =>
  (await person.get<AuditEvent[]>(`/events?${new URLSearchParams(query).toString()}`)).body;
const pickActions = (events: { action: string }[]) => events.map(({ action }) => action);
const createTunnel = async (person: Person) =>
  (await person.post<Tunnel>("/tunnels", { localPort: 1 })).body;

describe("the organization's log", () => {
  test("has each event with its actor, action, resource and time, newest first", async () => {
    const tunnel = await createTunnel(owner);
    const [newest, ...older] = await readEvents(owner);
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
    expect(pickActions(older)).toEqual(["session_created", "email_verified"]);
    const times = [newest!, ...older].map(({ timestamp }) => timestamp);
    expect(times).toEqual(times.toSorted().reverse());
  });

  test("is of that organization only, for every role in it", async () => {
    const viewer = await api.colleague(owner, "viewer");
    await createTunnel(await api.owner());
    expect(await readEvents(viewer)).toEqual(await readEvents(owner));
    const rows = await api.sql<{ id: string }>("select id from audit_events where org_id = $1", [
      owner.orgId,
    ]);
    const ids = (await readEvents(owner)).map(({ id }) => id);
    expect(ids.toSorted()).toEqual(rows.map(({ id }) => id).sort());
  });

  test("is filtered by action, time and actor, also combined", async () => {
    const admin = await api.owner();
    const member = await api.colleague(admin, "member");
    await createTunnel(admin);
    const start = new Date().toISOString();
    await createTunnel(member);
    await mintToken(member);

    expect(pickActions(await readEvents(admin, { action: "tunnel_created" }))).toHaveLength(2);
    for (const actor of [member.userId, member.email, ` ${member.email.toUpperCase()} `]) {
      const events = await readEvents(admin, { actor, start_time: start });
      expect(pickActions(events)).toEqual(["token_created", "tunnel_created"]);
    }
    expect(pickActions(await readEvents(admin, { start_time: start }))).toHaveLength(2);
    const startWithOffset = start.replace("Z", "+00:00");
    const query = {
      actor: member.email,
      start_time: startWithOffset,
      action: "token_created",
      limit: "5",
    };
    expect(pickActions(await readEvents(admin, query))).toEqual(["token_created"]);
    const inLowerCase = {
      ...query,
      start_time: start.toLowerCase(),
      end_time: "9999-12-31t23:59:59z",
    };
    expect(pickActions(await readEvents(admin, inLowerCase))).toEqual(["token_created"]);
    expect(await readEvents(admin, { actor: owner.email })).toEqual([]);
    expect(await readEvents(admin, { start_time: "9999-12-31T23:59:59Z" })).toEqual([]);
    expect((await readEvents(admin, { start_time: "0000-01-01T00:00:00Z" })).length).toBe(
      (await readEvents(admin)).length,
    );
  });

  test("is filtered by the end of a time range, the address and a text", async () => {
    const admin = await api.owner();
    const { body: project } = await admin.post<{ slug: string }>("/projects", {
      slug: `p-${crypto.randomUUID().slice(0, 8)}`,
      name: "100% of it",
    });
    const end = (await readEvents(admin))[0]!.timestamp;
    await mintToken(admin, { name: "Continuous Integration" });
    const { body: tunnel } = await admin.post<Tunnel>("/tunnels", { localPort: 1 });
    await admin.delete(`/tunnels/${tunnel.id}`);

    const older = pickActions(await readEvents(admin, { end_time: end }));
    expect(older).toEqual(["session_created", "email_verified"]);
    const all = await readEvents(admin);
    expect(await readEvents(admin, { ip_address: "127.0.0.1" })).toEqual(all);
    expect(await readEvents(admin, { ip_address: "127.0.0.10" })).toEqual([]);
    for (const [text, actions] of [
      ["continuous INTEG", ["token_created"]],
      ["Token created", ["token_created"]],
      [project.slug, ["project_created"]],
      [tunnel.subdomain, ["tunnel_deleted", "tunnel_created"]],
      [tunnel.id, ["tunnel_deleted", "tunnel_created"]],
      ["%", []],
      [`${admin.email}\\`, []],
    ] as const) {
      expect([text, pickActions(await readEvents(admin, { text }))]).toEqual([text, actions]);
    }
    const own = all.filter(({ userEmail }) => userEmail === admin.email);
    expect(await readEvents(admin, { text: admin.email.toUpperCase() })).toEqual(own);
    expect(await readEvents(owner, { text: admin.email })).toEqual([]);
    const query = { text: "tunnel", action: "tunnel_created", ip_address: "127.0.0.1" };
    expect(pickActions(await readEvents(admin, query))).toEqual(["tunnel_created"]);
  });

  test.each([
    { end_time: "tomorrow" },
    { end_time: "2026-02-30T00:00:00Z" },
    { ip_address: "127.0.0.1' or true --" },
    { ip_address: "1".repeat(50) },
    { text: "some\0body" },
    { text: "a".repeat(300) },
    { start_time: "yesterday" },
    { start_time: "2026-02-30T00:00:00Z" },
    { start_time: "2026-01-01" },
    { start_time: "1767225600" },
    { limit: "0" },
    { limit: "1001" },
    { limit: "many" },
    { after: "the beginning" },
    { action: "nope" },
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
    const admin = await api.owner();
    // The events of one transaction have one timestamp: their order must be stable all the same.
    await api.sql(
      "insert into audit_events (org_id, action, resource_type, resource_id) select $1, 'tunnel_expired', 'tunnel', n::text from generate_series(1, 25) n",
      [admin.orgId],
    );
    const all = await readEvents(admin);
    const paged: AuditEvent[] = [];
    for (;;) {
      const last = paged.at(-1);
      const page = await readEvents(admin, { limit: "10", ...(last && { after: last.id }) });
      paged.push(...page);
      if (page.length < 10) break;
    }
    expect(paged).toEqual(all);
    const [otherEvent] = await readEvents(owner);
    expect((await admin.get(`/events?after=${otherEvent!.id}`)).status).toBe(400);
  });

  test("is searched for a text in a bounded number of events, and earlier with a time", async () => {
    const admin = await api.owner();
    const insert = `insert into audit_events (org_id, action, resource_type, resource_id, created_at)
      select $1, 'tunnel_expired', 'tunnel', $2, now() - n * interval '1 ms' - interval '1 day' * $3
      from generate_series(1, $4::int) n`;
    await api.sql(insert, [admin.orgId, "a needle", 1, 1]);
    expect(await readEvents(admin, { text: "needle" })).toHaveLength(1);
    await api.sql(insert, [admin.orgId, "hay", 0, AUDIT_SEARCH_MAX_EVENTS]);
    expect(await readEvents(admin, { text: "needle" })).toEqual([]);
    const anHourAgo = new Date(Date.now() - 3_600_000).toISOString();
    expect(await readEvents(admin, { text: "needle", end_time: anHourAgo })).toHaveLength(1);
  });

  test("retains its events when the account is deleted, without the actor", async () => {
    const admin = await api.owner();
    const member = await api.colleague(admin, "member");
    await createTunnel(member);
    await api.sql("delete from users where id = $1", [member.userId]);
    const [event] = await readEvents(admin);
    expect(event).toMatchObject({ action: "tunnel_created", userEmail: null });
  });
});

describe("the log of an account", () => {
  test("has the security events of the account, of every organization", async () => {
    const person = await api.signUp();
    await createTunnel(person);
    await mintToken(person);
    await api.anonymous.post("/auth/signup", { email: person.email, password: PASSWORD });
    const { body } = await person.get<PersonalEvent[]>("/me/events");
    expect(pickActions(body)).toEqual([
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
    expect(pickActions(all)).toEqual(["session_created", "email_verified", "account_created"]);
    const { body: rest } = await person.get(`/me/events?limit=2&after=${all[0]!.id}`);
    expect(rest).toEqual(all.slice(1));
    const [otherEvent] = (await colleague.get<PersonalEvent[]>("/me/events")).body;
    expect((await person.get(`/me/events?after=${otherEvent!.id}`)).status).toBe(400);
  });
});

describe("the event of a sign-in", () => {
  const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

  test("names the browser, and says when no earlier sign-in had it", async () => {
    const person = await api.signUp();
    const signInWith = async (userAgent: string) => {
      const { email } = person;
      const browser = createCaller(api.server, { "user-agent": userAgent });
      expect(await browser.post("/auth/login", { email, password: PASSWORD })).toMatchObject({
        status: 200,
      });
    };
    await signInWith(FIREFOX);
    await signInWith(FIREFOX.replaceAll("140", "141"));
    await signInWith("curl/8.0");
    const { body } = await person.get<PersonalEvent[]>("/me/events");
    const signIns = body.filter(({ action }) => action === "session_created");
    const names = signIns.map(({ metadata }) => [metadata.deviceName, metadata.newDevice]);
    expect(names).toEqual([
      ["curl/8.0", true],
      ["Firefox on Linux", undefined],
      ["Firefox on Linux", true],
      ["node", undefined],
    ]);
    expect(signIns.filter(({ metadata }) => metadata.newAddress)).toEqual([]);
  });

  test("says when no earlier sign-in came from its address", async () => {
    const { email, ...person } = await api.signUp();
    for (const localAddress of ["127.0.0.2", "127.0.0.2"]) {
      const signingIn = request({
        host: "127.0.0.1",
        port: api.server.port,
        localAddress,
        path: "/auth/login",
        method: "POST",
        headers: { "content-type": "application/json" },
      });
      signingIn.end(JSON.stringify({ email, password: PASSWORD }));
      const [response] = (await once(signingIn, "response")) as [IncomingMessage];
      await text(response);
      expect(response.statusCode).toBe(200);
    }
    const { body } = await person.get<PersonalEvent[]>("/me/events");
    const signIns = body.filter(({ action }) => action === "session_created");
    expect(signIns.map(({ ipAddress, metadata }) => [ipAddress, metadata.newAddress])).toEqual([
      ["127.0.0.2", undefined],
      ["127.0.0.2", true],
      ["127.0.0.1", undefined],
    ]);
  });

  test("is compared with a bounded number of the user's events", async () => {
    const person = await api.signUp();
    await api.sql(
      `insert into audit_events (user_id, action, resource_type, resource_id, ip, metadata)
       select $1, 'session_created', 'session', n::text, '192.0.2.7', '{"deviceName": "curl/8.0"}'
       from generate_series(1, 5000) n`,
      [person.userId],
    );
    const { email } = person;
    await createCaller(api.server, {}).post("/auth/login", { email, password: PASSWORD });
    const { body } = await person.get<PersonalEvent[]>("/me/events?limit=1");
    expect(body[0]!.metadata).toMatchObject({ deviceName: "node", newDevice: true });
  });
});

describe("a recorded event", () => {
  test.each([
    "update audit_events set action = 'nothing'",
    "delete from audit_events",
    "truncate audit_events",
    "truncate audit_events, users cascade",
  ])("is permanent: the database refuses to %s", async (statement) => {
    const { orgId } = await api.owner();
    const count = () => api.sql("select count(*) from audit_events where org_id = $1", [orgId]);
    const before = await count();
    await expect(api.sql(statement)).rejects.toThrow("audit_events is append-only");
    expect(await count()).toEqual(before);
  });

  test("is committed with its change: neither happens without the other", async () => {
    const person = await api.owner();
    const before = await readEvents(person);
    const tunnel = await createTunnel(owner);
    const duplicate = { localPort: 1, subdomain: tunnel.subdomain };
    expect((await person.post("/tunnels", duplicate)).status).toBe(409);
    expect((await person.delete(`/tunnels/${crypto.randomUUID()}`)).status).toBe(404);
    expect(await readEvents(person)).toEqual(before);

    await api.sql(
      "alter table audit_events add constraint broken check (action <> 'token_created') not valid",
    );
    try {
      expect((await person.post("/tokens", { name: "unrecorded" })).status).toBe(500);
    } finally {
      await api.sql("alter table audit_events drop constraint broken");
    }
    expect((await person.get<unknown[]>("/tokens")).body).toEqual([]);
    expect(await readEvents(person)).toEqual(before);
  });

  test("is one for each change, also with concurrent changes", async () => {
    const person = await api.owner();
    const tunnels = await Promise.all(Array.from({ length: 20 }, () => createTunnel(person)));
    const created = await readEvents(person, { action: "tunnel_created" });
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
