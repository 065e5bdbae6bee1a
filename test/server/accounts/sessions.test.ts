import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PersonalEvent } from "../../../protocol/schemas/organizations/audit.ts";
import type { Session } from "../../../protocol/schemas/accounts/accounts.ts";
import { SESSIONS_PER_USER_MAX } from "../../../workers/limits.ts";
import {
  createCaller,
  getFirstCookie,
  PASSWORD,
  startApi,
  waitUntil,
  type Caller,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

const refresh = (cookie: string, headers: Record<string, string> = {}) =>
  createCaller(api.server, { cookie, ...headers }).post<{ access_token: string; error?: string }>(
    "/auth/refresh",
  );
const listSessions = async (person: Caller) =>
  (await person.get<{ sessions: Session[] }>("/auth/sessions")).body.sessions;
const findCurrentSession = async (person: Caller) =>
  (await listSessions(person)).find(({ current }) => current)!;
const createBearerCaller = (token: string) =>
  createCaller(api.server, { authorization: `Bearer ${token}` });
const listActions = async (person: Caller) =>
  (await person.get<PersonalEvent[]>("/me/events")).body.map(({ action }) => action);

describe("the list of sessions", () => {
  test("has each session with its device, address and times, newest first, and marks the current one", async () => {
    const first = await api.owner();
    await api.anonymous.send("POST", "/auth/login", {
      headers: {
        "content-type": "application/json",
        "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
      },
      body: JSON.stringify({ email: first.email, password: PASSWORD }),
    });
    const sessions = await listSessions(first);
    expect(sessions.map(({ current }) => current)).toEqual([false, true]);
    expect(sessions[0]).toEqual({
      id: expect.any(String),
      device: "Firefox on Linux",
      ip: "127.0.0.1",
      createdAt: expect.stringMatching(/^\d{4}-.+Z$/),
      lastSeenAt: expect.stringMatching(/^\d{4}-.+Z$/),
      current: false,
    });
    expect(sessions[0]!.createdAt > sessions[1]!.createdAt).toBe(true);
  });

  test("are listed also without a User-Agent", async () => {
    const person = await api.owner();
    await createCaller(api.server, { "user-agent": "" }).post("/auth/login", {
      email: person.email,
      password: PASSWORD,
    });
    expect((await listSessions(person))[0]).toMatchObject({ device: "Unknown device" });
  });

  test("has no session of another account, and no ended or expired one", async () => {
    const person = await api.owner();
    const [loggedOut, expired] = [
      await api.logIn(person.email, PASSWORD),
      await api.logIn(person.email, PASSWORD),
    ];
    await loggedOut.post("/auth/logout");
    const { id } = await findCurrentSession(expired);
    await api.sql("update sessions set expires_at = now() where id = $1", [id]);
    await api.owner();
    expect(await listSessions(person)).toMatchObject([{ current: true }]);
  });

  test("shows to the minute when a session was used, without a write for each request", async () => {
    const person = await api.owner();
    const { id, lastSeenAt } = await findCurrentSession(person);
    expect((await findCurrentSession(person)).lastSeenAt).toBe(lastSeenAt);
    await api.sql(
      "update sessions set last_seen_at = now() - interval '61 seconds', ip = '' where id = $1",
      [id],
    );
    await person.get("/auth/me");
    const updated = await waitUntil(async () => {
      const [row] = await api.sql<{ ip: string; fresh: boolean }>(
        "select ip, last_seen_at > now() - interval '10 seconds' as fresh from sessions where id = $1",
        [id],
      );
      return row!.fresh ? row : null;
    });
    expect(updated.ip).toBe("127.0.0.1");
  });
});

describe("ending a session", () => {
  test("ends its access tokens and its cookie from the next request on, and those of no other session", async () => {
    const owner = await api.owner();
    const otherSession = await api.logIn(owner.email, PASSWORD);
    const { id } = await findCurrentSession(otherSession);
    expect(await owner.delete(`/auth/sessions/${id}`)).toMatchObject({
      status: 200,
      body: { ok: true },
    });
    expect((await otherSession.get("/auth/me")).status).toBe(401);
    expect((await refresh(otherSession.cookie)).status).toBe(401);
    expect(await listSessions(owner)).toMatchObject([{ current: true }]);
    expect((await listActions(owner))[0]).toBe("session_revoked");
    expect((await owner.delete(`/auth/sessions/${id}`)).status).toBe(404);
  });

  test("that is the current one clears its cookie", async () => {
    const owner = await api.owner();
    const { id } = await findCurrentSession(owner);
    const { status, headers } = await owner.delete(`/auth/sessions/${id}`);
    expect([status, getFirstCookie(headers)]).toEqual([200, "qnt_refresh="]);
    expect((await owner.get("/auth/sessions")).status).toBe(401);
  });

  test("of another account answers 404", async () => {
    const [owner, other] = [await api.owner(), await api.owner()];
    const { id } = await findCurrentSession(other);
    for (const path of [id, crypto.randomUUID(), "invalid"]) {
      expect((await owner.delete(`/auth/sessions/${path}`)).status).toBe(404);
    }
    expect((await other.get("/auth/me")).status).toBe(200);
  });

  test("refuses all later requests, however many are in progress", async () => {
    const person = await api.owner();
    const { id } = await findCurrentSession(person);
    const inProgress = Array.from({ length: 20 }, () => person.get("/auth/me"));
    await person.delete(`/auth/sessions/${id}`);
    const later = await Promise.all(Array.from({ length: 20 }, () => person.get("/auth/me")));
    expect(new Set(later.map(({ status }) => status))).toEqual(new Set([401]));
    await Promise.all(inProgress);
  });

  test("with twenty concurrent requests is one event", async () => {
    const owner = await api.owner();
    const { id } = await findCurrentSession(await api.logIn(owner.email, PASSWORD));
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => owner.delete(`/auth/sessions/${id}`)),
    );
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(
      (await listActions(owner)).filter((action) => action === "session_revoked"),
    ).toHaveLength(1);
  });
});

test("a removed member's session is renewed for another organization, and can be ended", async () => {
  const owner = await api.owner();
  const guest = await api.colleague(owner, "member");
  await api.sql("delete from memberships where user_id = $1", [guest.userId]);
  expect((await guest.get("/auth/sessions")).status).toBe(401);

  const renewed = await refresh(guest.cookie);
  const again = createBearerCaller(renewed.body.access_token);
  const { body } = await again.get<{ active_org: { id: string; role: string } }>("/auth/me");
  expect(body.active_org.role).toBe("owner");
  expect(body.active_org.id).not.toBe(owner.orgId);
  expect((await again.post("/auth/logout")).status).toBe(200);
  expect((await refresh(getFirstCookie(renewed.headers))).status).toBe(401);
});

test("sessions can be ended with the access token of an organization that one has left, which does not see it", async () => {
  const owner = await api.owner();
  const guest = await api.colleague(owner, "member");
  const other = await api.logIn(guest.email, PASSWORD);
  const { id } = await findCurrentSession(other);
  expect((await owner.delete(`/orgs/${owner.orgId}/members/${guest.userId}`)).status).toBe(200);
  expect((await guest.delete(`/auth/sessions/${id}`)).status).toBe(200);
  expect((await refresh(other.cookie)).status).toBe(401);
  const { status, headers } = await guest.post("/auth/logout");
  expect([status, getFirstCookie(headers)]).toEqual([200, "qnt_refresh="]);
  expect((await refresh(guest.cookie)).status).toBe(401);
  expect((await guest.post("/auth/logout")).status).toBe(401);
  const events = await api.sql(
    "select org_id from audit_events where user_id = $1 and action = 'session_revoked'",
    [guest.userId],
  );
  expect(events).toEqual([{ org_id: null }, { org_id: null }]);
});

describe("the refresh cookie", () => {
  let owner: Person;
  beforeAll(async () => {
    owner = await api.owner();
  });
  const logIn = () => api.logIn(owner.email, PASSWORD);
  const setRotationAge = async (person: Caller, seconds: number) => {
    const { id } = await findCurrentSession(person);
    await api.sql(
      "update sessions set rotated_at = now() - $1 * interval '1 second' where id = $2",
      [seconds, id],
    );
  };

  test("is replaced at each use by one that is sent only to /auth and hidden from scripts", async () => {
    const cookies = new Set<string>();
    let { cookie } = await logIn();
    for (let use = 0; use < 5; use++) {
      const { status, body, headers } = await refresh(cookie);
      expect(status).toBe(200);
      expect((await createBearerCaller(body.access_token).get("/auth/me")).status).toBe(200);
      const [set] = headers.getSetCookie();
      expect(set).toMatch(
        /^qnt_refresh=[^;]+; Max-Age=2592000; Path=\/auth; HttpOnly; SameSite=Lax$/,
      );
      cookies.add((cookie = getFirstCookie(headers)));
    }
    expect(cookies.size).toBe(5);
  });

  test("is named by the refusal of a request without it", async () => {
    expect(await createCaller(api.server, {}).post("/auth/refresh")).toMatchObject({
      status: 401,
      body: { message: "The request has no cookie qnt_refresh. Log in first." },
    });
  });

  test("stays when it is no longer valid, so that a late answer does not delete that of a new login", async () => {
    const { status, headers } = await refresh("qnt_refresh=anything");
    expect(status).toBe(401);
    expect(headers.getSetCookie()).toEqual([]);
    expect(headers.get("www-authenticate")).toBe("Bearer");
  });

  test("has the same successor for twenty concurrent uses, also after nine seconds, and not after eleven", async () => {
    const person = await logIn();
    const replies = await Promise.all(Array.from({ length: 20 }, () => refresh(person.cookie)));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
    const [successor, ...others] = new Set(replies.map(({ headers }) => getFirstCookie(headers)));
    expect(others).toEqual([]);

    await setRotationAge(person, 9);
    expect(getFirstCookie((await refresh(person.cookie)).headers)).toBe(successor);
    await setRotationAge(person, 11);
    expect((await refresh(person.cookie)).status).toBe(401);
    expect((await refresh(successor!)).status).toBe(401);
    expect((await person.get("/auth/me")).status).toBe(401);
  });

  test("of two generations ago counts as stolen within the grace period, and its owner is notified", async () => {
    const person = await logIn();
    const second = await refresh(person.cookie);
    const third = await refresh(getFirstCookie(second.headers));
    expect((await refresh(person.cookie)).status).toBe(401);
    expect((await refresh(getFirstCookie(third.headers))).status).toBe(401);
    for (const token of [person.accessToken, second.body.access_token, third.body.access_token]) {
      expect((await createBearerCaller(token).get("/auth/me")).status).toBe(401);
    }
    const { body } = await owner.get<PersonalEvent[]>("/me/events");
    expect(body[0]).toMatchObject({
      action: "session_reuse_detected",
      resourceType: "session",
      userEmail: owner.email,
      ipAddress: "127.0.0.1",
    });
  });

  test("does not sign out a user whose two tabs always renew together", async () => {
    const person = await logIn();
    let { cookie } = person;
    for (let round = 0; round < 10; round++) {
      const pair = await Promise.all([refresh(cookie), refresh(cookie)]);
      expect(pair.map(({ status }) => status)).toEqual([200, 200]);
      expect(getFirstCookie(pair[0].headers)).toBe(getFirstCookie(pair[1].headers));
      cookie = getFirstCookie(pair[0].headers);
    }
    await setRotationAge(person, 60);
    expect((await refresh(cookie)).status).toBe(200);
  });

  test("has at most one valid successor after the grace period, in any order of uses", async () => {
    const { cookie: first } = await logIn();
    const cookies = new Set([first]);
    for (let round = 0; round < 3; round++) {
      const replies = await Promise.all(
        [...cookies].flatMap((cookie) => Array.from({ length: 7 }, () => refresh(cookie))),
      );
      for (const { headers } of replies) cookies.add(getFirstCookie(headers));
    }
    await api.sql(
      "update sessions set rotated_at = now() - interval '1 minute' where user_id = $1",
      [owner.userId],
    );
    const outcomes = [];
    for (const cookie of cookies) outcomes.push((await refresh(cookie)).status);
    expect(outcomes.filter((status) => status === 200).length).toBeLessThanOrEqual(1);
  });

  test("that was never issued ends no session", async () => {
    const { cookie } = await logIn();
    const [sessionId, secret, proof] = cookie.slice("qnt_refresh=".length).split(".");
    for (const forged of [
      "",
      "invalid",
      `${sessionId}.guess.${proof}`,
      `${sessionId}.${secret}.${"0".repeat(64)}`,
      `${crypto.randomUUID()}.${secret}.${proof}`,
    ]) {
      expect((await refresh(`qnt_refresh=${forged}`)).status).toBe(401);
    }
    expect((await refresh(cookie)).status).toBe(200);
  });

  test("is stored as a hash only", async () => {
    const { cookie } = await logIn();
    const secret = cookie.split(".")[1]!;
    const rows = await api.sql("select * from sessions where user_id = $1", [owner.userId]);
    expect(JSON.stringify(rows)).not.toContain(secret);
  });

  test("that has expired is not renewed", async () => {
    const person = await logIn();
    const { id } = await findCurrentSession(person);
    await api.sql("update sessions set expires_at = now() where id = $1", [id]);
    expect((await refresh(person.cookie)).status).toBe(401);
    expect((await person.get("/auth/me")).status).toBe(401);
  });

  test.each([
    ["a tunnel's page", () => ({ origin: api.server.tunnelUrl("evil") })],
    ["a sandboxed page", () => ({ origin: "null" })],
    ["another site's page", () => ({ origin: "https://evil.test" })],
    ["a tunnel's page, without an origin", () => ({ "sec-fetch-site": "same-site" })],
    ["another site's page, without an origin", () => ({ "sec-fetch-site": "cross-site" })],
    [
      "another site's page with a forged origin",
      () => ({ origin: api.server.url, "sec-fetch-site": "cross-site" }),
    ],
  ])("is not renewed for %s, and remains valid", async (_, headers) => {
    const { cookie } = await logIn();
    const { status, body, headers: answered } = await refresh(cookie, headers());
    expect([status, body.error]).toEqual([403, "forbidden"]);
    expect(answered.getSetCookie()).toEqual([]);
    const own = { origin: api.server.url, "sec-fetch-site": "same-origin" };
    expect((await refresh(cookie, own)).status).toBe(200);
  });
});

test("the least recently used session ends when a user has a hundred", async () => {
  const owner = await api.owner();
  const ids = Array.from({ length: SESSIONS_PER_USER_MAX }, () => crypto.randomUUID());
  for (let n = 1; n < SESSIONS_PER_USER_MAX; n++) {
    await api.sql(
      `insert into sessions (id, user_id, org_id, refresh_hash, expires_at, device, ip, last_seen_at)
       values ($1::uuid, $2, $3, $1::text, now() + interval '1 day', '', '', now() - $4 * interval '1 minute')`,
      [ids[n], owner.userId, owner.orgId, n],
    );
  }
  await api.logIn(owner.email, PASSWORD);
  const listed = await listSessions(owner);
  expect(listed).toHaveLength(SESSIONS_PER_USER_MAX);
  expect(listed.map((session) => session.id)).not.toContain(ids[SESSIONS_PER_USER_MAX - 1]);
  expect(await findCurrentSession(owner)).toBeDefined();
});

test("on https the cookie is Secure", async () => {
  await using secure = await startApi({ kind: "public" });
  const { email } = await secure.owner();
  const { headers } = await secure.anonymous.post("/auth/login", { email, password: PASSWORD });
  expect(headers.getSetCookie()[0]).toMatch(/; HttpOnly; Secure; SameSite=Lax$/);
});
