import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fromBase64 } from "../../../shared/bytes.ts";
import { startApi, waitUntil, type Person, type TestApi } from "../../harness/server/api.ts";

interface DeviceRequest {
  device_code: string;
  user_code: string;
  verification_uri: string;
  verification_uri_complete: string;
  interval: number;
  expires_in: number;
}
interface CollectedToken {
  wire_bytes_b64: string;
  label: string;
}

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
});
afterAll(() => api.stop());

async function start(label = "a laptop"): Promise<DeviceRequest> {
  return (await api.anonymous.post<DeviceRequest>("/auth/cli/start", { label })).body;
}
const poll = (code: string, wait = 0) =>
  api.anonymous.post<CollectedToken>("/auth/cli/poll", { device_code: code, wait });
const approve = (code: string, by = owner) =>
  by.post<CollectedToken>("/auth/cli/authorize", { device_code: code });
const deny = (code: string, by = owner) => by.post("/auth/cli/deny", { device_code: code });

/** For connections that the server opens from now on: its current ones are closed. */
async function setDatabaseClock(hoursAhead: number): Promise<void> {
  await api.sql("create schema if not exists clock");
  await api.sql(`create or replace function clock.now() returns timestamptz language sql stable
    as 'select pg_catalog.now() + interval ''${hoursAhead} hours'''`);
  const path = hoursAhead === 0 ? "default" : "clock, pg_catalog, public";
  await api.sql(`alter role current_user set search_path to ${path}`);
  const others =
    "from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()";
  await api.sql(`select pg_terminate_backend(pid, 60000) ${others}`);
}

describe("the device flow", () => {
  test("starts with a code for the machine and one for its user", async () => {
    const started = await start();
    expect(started).toMatchObject({
      user_code: expect.stringMatching(/^[B-DF-HJ-NP-TV-Z]{4}-[B-DF-HJ-NP-TV-Z]{4}$/),
      verification_uri: `http://localhost:${api.server.port}/activate`,
      interval: 2,
      expires_in: 600,
    });
    expect(started.verification_uri_complete).toContain(`?code=${started.user_code}`);
    expect(fromBase64(started.device_code)).toHaveLength(32);
  });

  test("hands the approved token to the machine once", async () => {
    const { device_code, user_code } = await start("my laptop");
    expect(await poll(device_code)).toMatchObject({
      status: 400,
      body: { error: "authorization_pending" },
    });
    const request = await owner.get(`/auth/cli/request?code=${user_code}`);
    expect(request).toMatchObject({ status: 200, body: { label: "my laptop", user_code } });
    expect(request.body).toMatchObject({
      requested_from: expect.stringMatching(/^(?:127\.0\.0\.1|::1)$/),
      requested_at: expect.stringMatching(/^\d{4}-.*Z$/),
    });

    const approved = await approve(user_code.toLowerCase().replace("-", " "));
    expect(approved).toMatchObject({ status: 200, body: { label: "my laptop" } });
    const collected = await poll(device_code);
    expect(collected).toMatchObject({ status: 200, body: approved.body });
    expect(await poll(device_code)).toMatchObject({ status: 410, body: { error: "expired" } });

    const agent = await api.connectAgent(collected.body.wire_bytes_b64, { port: 3000 });
    expect(agent.code).toBeUndefined();
    agent.socket?.close();
  });

  test("answers the approval with the token and its label alone, and the machine the same text", async () => {
    const { device_code } = await start("ci");
    const send = (path: string, bearer?: string) =>
      fetch(new URL(path, api.server.url), {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
        },
        body: JSON.stringify({ device_code }),
      });
    expect((await send("/auth/cli/authorize")).status).toBe(401);
    const approved = await send("/auth/cli/authorize", owner.accessToken);
    expect(approved.status).toBe(200);
    const text = await approved.text();
    expect(text).toMatch(/^\{"wire_bytes_b64":"[A-Za-z0-9+/]+={0,2}","label":"ci"\}$/);
    expect(await (await send("/auth/cli/poll")).text()).toBe(text);
  });

  test("mints a token of 90 days that is named after the machine", async () => {
    const { device_code } = await start("the build server");
    await approve(device_code);
    const { body } =
      await owner.get<{ name: string; issuedAt: number; expiresAt: number }[]>("/tokens");
    const token = body.find(({ name }) => name === "the build server")!;
    expect(token.expiresAt - token.issuedAt).toBe(90 * 24 * 3600);
  });

  test("answers slow_down to a machine that polls too often", async () => {
    const { device_code } = await start();
    await poll(device_code);
    expect(await poll(device_code)).toMatchObject({
      status: 400,
      body: { error: "slow_down", retry_after_seconds: 2 },
    });
  });

  test("answers a waiting poll as soon as the request is approved", async () => {
    const { device_code, user_code } = await start("a waiting machine");
    const waiting = poll(device_code, 25);
    await waitUntil(async () => {
      const [row] = await api.sql<{ polled: boolean }>(
        "select last_polled_at is not null as polled from device_codes where label = 'a waiting machine'",
      );
      return row!.polled;
    });
    // The waiting poll holds the only place of its machine.
    expect(await poll(device_code, 25)).toMatchObject({ body: { error: "slow_down" } });
    const approved = await approve(user_code);
    expect(await waiting).toMatchObject({ status: 200, body: approved.body });
  });

  test("answers a waiting poll as soon as the request is denied, which can then no longer be approved", async () => {
    const { device_code, user_code } = await start("a foreign machine");
    const waiting = poll(device_code, 25);
    await waitUntil(async () => {
      const rows = await api.sql(
        "select 1 from device_codes where label = 'a foreign machine' and last_polled_at is not null",
      );
      return rows.length > 0;
    });
    expect(await deny(user_code)).toMatchObject({ status: 200, body: { status: "denied" } });
    expect(await waiting).toMatchObject({ status: 400, body: { error: "access_denied" } });
    for (const again of [approve(user_code), approve(device_code), deny(user_code)])
      expect(await again).toMatchObject({ status: 400, body: { error: "invalid_code" } });
    expect(await api.sql("select 1 from tokens where name = 'a foreign machine'")).toEqual([]);
    const events = await owner.get<{ action: string; metadata: unknown }[]>(
      "/events?action=device_denied",
    );
    expect(events.body).toMatchObject([{ metadata: { label: "a foreign machine" } }]);
  });

  test("can't deny a request that was approved", async () => {
    const { device_code, user_code } = await start("an approved machine");
    await approve(user_code);
    expect(await deny(user_code)).toMatchObject({ status: 400, body: { error: "invalid_code" } });
    expect((await poll(device_code)).status).toBe(200);
  });

  test("does not give the token to a machine that has left, but to its next poll", async () => {
    const { device_code, user_code } = await start("a machine that left");
    const left = new AbortController();
    const waiting = api.anonymous.send("POST", "/auth/cli/poll", {
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ device_code, wait: 25 }),
      signal: left.signal,
    });
    await waitUntil(async () => {
      const rows = await api.sql(
        "select 1 from device_codes where label = 'a machine that left' and last_polled_at is not null",
      );
      return rows.length > 0;
    });
    left.abort();
    await expect(waiting).rejects.toThrow();
    await approve(user_code);
    const collected = await waitUntil(async () => {
      const reply = await poll(device_code);
      return reply.status === 200 && reply;
    });
    expect(collected.body.label).toBe("a machine that left");
  });

  test("waits as long as the machine asks, up to 25 seconds", async () => {
    const { device_code } = await start();
    expect(await poll(device_code, 0.3)).toMatchObject({
      body: { error: "authorization_pending" },
    });
    expect(await poll(device_code, 26)).toMatchObject({
      status: 400,
      body: { error: "invalid_request", fields: [{ path: "wait" }] },
    });
  });

  test("lets sixteen machines of one address wait at a time", async () => {
    const started = await Promise.all(Array.from({ length: 20 }, () => start()));
    const replies = await Promise.all(started.map(({ device_code }) => poll(device_code, 2)));
    const countErrors = (code: string) =>
      replies.filter(({ body }) => "error" in body && body.error === code).length;
    // A poll whose machine has just left may still have its place.
    expect(countErrors("authorization_pending")).toBeLessThanOrEqual(16);
    expect(countErrors("authorization_pending")).toBeGreaterThanOrEqual(12);
    expect(countErrors("slow_down")).toBe(20 - countErrors("authorization_pending"));
  });

  test("is approved once, also by concurrent approvals", async () => {
    const { user_code } = await start();
    const replies = await Promise.all(Array.from({ length: 20 }, () => approve(user_code)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(replies.filter(({ status }) => status === 400)).toHaveLength(19);
  });

  test("hands the token over once, also to concurrent polls", async () => {
    const { device_code, user_code } = await start();
    await approve(user_code);
    const replies = await Promise.all(Array.from({ length: 20 }, () => poll(device_code)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(replies.filter(({ status }) => status === 410)).toHaveLength(19);
  });

  test("does not hand over a token that was revoked in the meantime", async () => {
    const { device_code } = await start("revoked-device");
    await approve(device_code);
    const { body } = await owner.get<{ name: string; nonce: string }[]>("/tokens");
    await owner.delete(`/tokens/${body.find(({ name }) => name === "revoked-device")!.nonce}`);
    expect(await poll(device_code)).toMatchObject({
      status: 410,
      body: { error: "expired", message: expect.stringContaining("was collected or revoked") },
    });
  });

  test("ends after ten minutes", async () => {
    const { device_code, user_code } = await start("late");
    await api.sql("update device_codes set expires_at = now() where label = 'late'");
    expect((await approve(user_code)).status).toBe(400);
    expect((await poll(device_code)).status).toBe(410);
  });

  test.each(["ahead of", "behind"])(
    "works when the clock of the database is %s that of the server",
    async (where) => {
      const hours = where === "behind" ? -1 : 1;
      await setDatabaseClock(hours);
      const { device_code, user_code } = await start("with another clock");
      const pending = { status: 400, body: { error: "authorization_pending" } };
      expect(await poll(device_code)).toMatchObject(pending);
      const age = "last_polled_at = last_polled_at - interval '3 seconds'";
      await api.sql(`update device_codes set ${age}`);
      expect(await poll(device_code)).toMatchObject(pending);
      await setDatabaseClock(0);
      await api.sql("update device_codes set expires_at = expires_at - $1 * interval '1 hour'", [
        hours,
      ]);
      expect((await approve(user_code)).status).toBe(200);
    },
  );

  test("can only be approved with the permission to mint tokens", async () => {
    const viewer = await api.colleague(owner, "viewer");
    const { user_code } = await start();
    expect((await approve(user_code, viewer)).status).toBe(403);
    expect((await viewer.get(`/auth/cli/request?code=${user_code}`)).status).toBe(403);
  });

  test("can be approved once, and a second approval says why it is refused", async () => {
    const { user_code } = await start();
    expect((await approve(user_code)).status).toBe(200);
    expect(await approve(user_code)).toMatchObject({
      status: 400,
      body: { error: "invalid_code", message: expect.stringContaining("was used already") },
    });
  });

  test.each(["", "XXXX", "AAAA-EEEE", "BCDF-GHJK", "' or true --"])(
    "refuses the unknown code %j",
    async (code) => {
      expect(await approve(code)).toMatchObject({ status: 400, body: { error: "invalid_code" } });
      expect(await poll(code)).toMatchObject({ status: 410 });
    },
  );

  test("stores no plain text code with which a machine could be impersonated", async () => {
    const { device_code } = await start();
    const rows = await api.sql("select * from device_codes");
    expect(JSON.stringify(rows)).not.toContain(device_code);
  });
});
